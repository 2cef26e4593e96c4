package provider

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

const testKey = "sk-live-0123456789abcdef"

func TestNoFormatRevealsASecret(t *testing.T) {
	s := NewSecret(testKey + "\n")
	type holder struct {
		Public  Secret
		private Secret
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", s, "in", holder{s, s})
	std, err := stdjson.Marshal(holder{s, s})
	if err != nil {
		t.Fatal(err)
	}
	exp, err := json.Marshal(map[string]any{"a": s, "b": &s})
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{log.String(), string(std), string(exp), s.String()}
	for _, v := range []any{s, &s, holder{s, s}, &holder{s, s}, []Secret{s}, map[string]Secret{"k": s}, fmt.Errorf("bad key %v: %w", s, fmt.Errorf("%+v", s))} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
	}
	for _, text := range shown {
		if strings.Contains(text, testKey) || strings.Contains(text, fmt.Sprintf("%x", testKey)) {
			t.Errorf("revealed: %s", text)
		}
	}
	if s.Reveal() != testKey {
		t.Errorf("Reveal = %q", s.Reveal())
	}
}

func TestFingerprintsTellKeysApart(t *testing.T) {
	a, b := NewSecret(testKey), NewSecret(testKey+"x")
	if a.Fingerprint() == b.Fingerprint() || a.Fingerprint() != NewSecret(testKey).Fingerprint() {
		t.Errorf("fingerprints %q and %q", a.Fingerprint(), b.Fingerprint())
	}
	if len(a.Fingerprint()) != 8 || (Secret{}).Fingerprint() != "" {
		t.Errorf("fingerprints %q and %q", a.Fingerprint(), Secret{}.Fingerprint())
	}
}
