package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
)

// Secret is a credential that does not reveal itself: no verb of package fmt,
// no encoder and no logger gets more than a placeholder out of it, also when
// it sits inside another value. Only Reveal gives the text.
type Secret struct {
	// A closure, because fmt and the like print the unexported fields of a
	// value that they reach by reflection, but of a function only its address.
	reveal func() string
}

const redacted = "[secret]"

// NewSecret wraps a credential; surrounding white space is dropped, as keys
// are often read from files with a final newline.
func NewSecret(text string) Secret {
	text = strings.TrimSpace(text)
	if text == "" {
		return Secret{}
	}
	return Secret{reveal: func() string { return text }}
}

// Reveal gives the credential itself; empty if there is none.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Empty reports whether there is no credential.
func (s Secret) Empty() bool { return s.reveal == nil }

// Fingerprint tells credentials apart without revealing them: the first eight
// hexadecimal digits of the SHA-256; empty if there is none.
func (s Secret) Fingerprint() string {
	if s.Empty() {
		return ""
	}
	sum := sha256.Sum256([]byte(s.reveal()))
	return hex.EncodeToString(sum[:4])
}

// String is a placeholder.
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return redacted
}

// GoString is a placeholder.
func (s Secret) GoString() string { return s.String() }

// Format writes the placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalJSON writes the placeholder.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalText writes the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is a placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// scrub takes the credential out of a text: providers echo keys in errors.
func (s Secret) scrub(text string) string {
	if s.Empty() || len(s.reveal()) < 4 {
		return text
	}
	return strings.ReplaceAll(text, s.reveal(), redacted)
}
