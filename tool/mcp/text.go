package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// oneLine makes foreign text safe to show: one line of at most so many bytes.
func oneLine(s string, most int) string {
	s = visible.EscapedLine(strings.Join(strings.Fields(s), " "))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// harmless is an error in one line without what the configuration keeps secret.
func (s Server) harmless(err error) string {
	text := err.Error()
	if s.URL != "" {
		if u, parseErr := url.Parse(s.URL); parseErr == nil {
			text = strings.ReplaceAll(text, s.URL, u.Scheme+"://"+u.Host+u.Path)
			if u.RawQuery != "" {
				text = strings.ReplaceAll(text, u.RawQuery, "…")
			}
			if u.User != nil {
				text = strings.ReplaceAll(text, u.User.String()+"@", "")
				text = strings.ReplaceAll(text, u.Redacted(), u.Scheme+"://"+u.Host+u.Path)
			}
		}
	}
	var secrets []string
	for _, v := range s.Headers { // such as "Bearer KEY"
		secrets = append(secrets, strings.Fields(v)...)
	}
	for _, v := range s.Env {
		secrets = append(secrets, v)
	}
	for _, secret := range secrets {
		if len(secret) >= 8 { // a shorter one is no key, but often a word
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return oneLine(text, 300)
}

func checkURL(name, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil: // which would quote it, with what is secret in it
		return fmt.Errorf("the url of server %s cannot be understood: write it as https://host/path", name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("the url of server %s must begin with http:// or https:// and name a host", name)
	}
	return nil
}

var errTooMuch = errors.New("it sent more than 16 MiB at once")

// tail keeps the end of what a command writes.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-tailBytes):]...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// last is the last line that is not blank.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.kept))
	return oneLine(text[strings.LastIndexByte(text, '\n')+1:], 200)
}
