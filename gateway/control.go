package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/internal/visible"
)

// control is what a client asks for in the headers of its request, beside what
// the body says. Zero fields mean that it asks for nothing.
type control struct {
	// Deadline ends the call, FirstToken the wait for the first content, Idle any
	// wait for more of it.
	Deadline, FirstToken, Idle time.Duration
	// Route is the route to take, whatever the model's name; Fallbacks are models
	// or routes in place of the route's own fallbacks.
	Route     string
	Fallbacks []string
	Mode      heal.Mode
	// Attempts is the most requests that may be made for the call.
	Attempts int
	// Priority is added to that of route and key; never above 0.
	Priority int
	// Session is the conversation that the call belongs to; empty if nothing says.
	Session string
	Cache   cacheUse
	// Idempotency is the Idempotency-Key.
	Idempotency string
	// Retry is how many times the client has sent the request before by itself, as
	// far as it says so.
	Retry  int
	Client clientKind
	// RequestID is the client's own id of the request; empty if none is usable.
	RequestID string
}

// cacheUse says what a call may do with kept answers.
type cacheUse string

const (
	cacheDefault cacheUse = ""        // as the route says
	cacheUsed    cacheUse = "use"     // take a kept answer if there is one
	cacheRefresh cacheUse = "refresh" // ask anew, keep the answer
	cacheOff     cacheUse = "off"     // ask anew, keep nothing
)

// clientKind tells the clients apart that need errors of their own.
type clientKind string

const (
	clientClaudeCode clientKind = "claude-code"
	clientCodex      clientKind = "codex"
	clientOpencode   clientKind = "opencode"
	clientSDK        clientKind = "sdk" // an official SDK of OpenAI or Anthropic
	clientOther      clientKind = "other"
)

// clientOf finds the kind of a client in what it says of itself.
//
// Source: headers seen on the wire, notes/clients.md §2.
func clientOf(h http.Header) clientKind {
	agent := strings.ToLower(h.Get("User-Agent"))
	switch {
	case strings.HasPrefix(strings.ToLower(h.Get("Originator")), "codex"), strings.HasPrefix(agent, "codex"):
		return clientCodex
	case strings.HasPrefix(agent, "claude-cli/"), strings.HasPrefix(agent, "claude-code/"), h.Get("X-Claude-Code-Session-Id") != "":
		return clientClaudeCode
	case strings.HasPrefix(agent, "opencode/"):
		return clientOpencode
	case strings.HasPrefix(agent, "openai/"), strings.HasPrefix(agent, "anthropic/"):
		return clientSDK
	}
	return clientOther
}

// The bounds of what headers may ask for.
const (
	maxAsked     = 24 * time.Hour
	maxAttempts  = 10 // as heal's own
	maxFallbacks = 8
	maxWord      = 200 // bytes of a name
	maxID        = 128 // bytes of a session or request id
)

const ourPrefix = "X-Ninelives-"

// controls are the headers by which a client asks for something, each with how
// it is read.
var controls = map[string]func(c *control, value string) error{
	"Deadline-Ms":    func(c *control, v string) error { return readMilliseconds(&c.Deadline, v) },
	"First-Token-Ms": func(c *control, v string) error { return readMilliseconds(&c.FirstToken, v) },
	"Idle-Ms":        func(c *control, v string) error { return readMilliseconds(&c.Idle, v) },
	"Attempts":       func(c *control, v string) error { return readNumber(&c.Attempts, v, 1, maxAttempts) },
	"Priority":       func(c *control, v string) error { return readNumber(&c.Priority, v, -100, 0) },
	"Route":          func(c *control, v string) error { return readWord(&c.Route, v) },
	"Session":        func(c *control, v string) error { return readWord(&c.Session, v) },
	"Fallbacks":      readFallbacks,
	"Mode": func(c *control, v string) error {
		return readOneOf(&c.Mode, v, heal.ModeContinue, heal.ModeHold, heal.ModeFail)
	},
	"Cache": func(c *control, v string) error { return readOneOf(&c.Cache, v, cacheUsed, cacheRefresh, cacheOff) },
}

// parseControl reads what the headers of a request ask for. body is the session
// that its body names (wire.Head); headers count before it. The error is for
// the client: a header that is not understood is never passed over, or a
// deadline would be lost to a typing error.
func parseControl(h http.Header, body string) (control, *refused) {
	c := control{Client: clientOf(h)}
	var ours []string
	for name := range h {
		if strings.HasPrefix(name, ourPrefix) {
			ours = append(ours, name)
		}
	}
	slices.Sort(ours)
	for _, name := range ours {
		values, rest := h[name], strings.TrimPrefix(name, ourPrefix)
		read := controls[rest]
		if read == nil {
			return control{}, unknownHeader(name, rest)
		}
		value := strings.TrimSpace(values[0])
		switch {
		case rest == "Fallbacks":
			value = strings.Join(values, ",")
		case len(values) > 1:
			return control{}, badHeader(name, strings.Join(values, ", "), "it may stand only once")
		case value == "":
			continue
		}
		if err := read(&c, value); err != nil {
			return control{}, badHeader(name, value, err.Error())
		}
	}
	if v := strings.TrimSpace(h.Get("Idempotency-Key")); v != "" {
		if len(v) > 255 || !isPrintable(v) {
			return control{}, badHeader("Idempotency-Key", v, "at most 255 visible ASCII characters are allowed")
		}
		c.Idempotency = v
	}
	c.Session = sessionOf(c.Session, h, body)
	c.Retry = clientRetry(h)
	if v := h.Get("X-Request-Id"); safeID(v) {
		c.RequestID = v
	}
	return c, nil
}

// sessionHeaders are where clients say which conversation a request belongs to,
// the surest first.
//
// Source: headers seen on the wire, notes/clients.md §2 and §5.
var sessionHeaders = []string{"X-Claude-Code-Session-Id", "Session-Id", "Thread-Id", "X-Session-Id", "Session_id", "session_id"}

// sessionOf is the session of a request: what was asked for in our own header,
// what the client's own headers say, what the body says.
func sessionOf(own string, h http.Header, body string) string {
	if own != "" {
		return sessionKey(own)
	}
	for _, name := range sessionHeaders {
		// Not by Get: net/http spells the name with an underscore in one way,
		// proxies and tests in the other.
		if v := h[name]; len(v) > 0 && v[0] != "" {
			return sessionKey(v[0])
		}
	}
	if body != "" {
		return sessionKey(body)
	}
	return ""
}

// sessionKey is a session as it is kept and shown: as it is, or, where it is
// long or odd, its hash.
func sessionKey(s string) string {
	if safeID(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// clientRetry is how often a client says that it has sent the request before.
// Only the official SDKs say so truly.
func clientRetry(h http.Header) int {
	n, err := strconv.Atoi(h.Get("X-Stainless-Retry-Count"))
	if err != nil || n < 0 || n > 1000 {
		return 0
	}
	return n
}

// safeID says that an id of somebody else can be taken over as it is.
func safeID(s string) bool {
	return s != "" && len(s) <= maxID && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/@=+", r))
	})
}

func readMilliseconds(d *time.Duration, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 || n > maxAsked.Milliseconds() {
		return fmt.Errorf("whole milliseconds from 1 to %d are allowed", maxAsked.Milliseconds())
	}
	*d = time.Duration(n) * time.Millisecond
	return nil
}

func readNumber(n *int, v string, least, most int) error {
	got, err := strconv.Atoi(v)
	if err != nil || got < least || got > most {
		return fmt.Errorf("a whole number from %d to %d is allowed", least, most)
	}
	*n = got
	return nil
}

func readWord(s *string, v string) error {
	if len(v) > maxWord || !isPrintable(v) {
		return fmt.Errorf("at most %d visible ASCII characters are allowed", maxWord)
	}
	*s = v
	return nil
}

func readOneOf[T ~string](s *T, v string, allowed ...T) error {
	if !slices.Contains(allowed, T(v)) {
		words := make([]string, len(allowed))
		for i, a := range allowed {
			words[i] = string(a)
		}
		return fmt.Errorf("%s are allowed", strings.Join(words, ", "))
	}
	*s = T(v)
	return nil
}

func readFallbacks(c *control, v string) error {
	for name := range strings.SplitSeq(v, ",") {
		var s string
		if err := readWord(&s, strings.TrimSpace(name)); err != nil {
			return fmt.Errorf("names of models or routes with commas between are allowed, each of at most %d visible ASCII characters", maxWord)
		}
		if s != "" && !slices.Contains(c.Fallbacks, s) {
			c.Fallbacks = append(c.Fallbacks, s)
		}
	}
	if len(c.Fallbacks) > maxFallbacks {
		return fmt.Errorf("at most %d names are allowed", maxFallbacks)
	}
	return nil
}

// isPrintable says that there is nothing but visible ASCII and blanks in a value.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func badHeader(name, value, allowed string) *refused {
	name = strings.ToLower(name)
	return &refused{Trouble: troubleMalformed, Param: name, Text: fmt.Sprintf("The header %s cannot be understood: %q was sent, %s.",
		name, clipped(visible.EscapedLine(value), 64), allowed)}
}

func unknownHeader(name, rest string) *refused {
	names := make([]string, 0, len(controls))
	for known := range controls {
		names = append(names, known)
	}
	slices.Sort(names)
	name = strings.ToLower(clipped(visible.EscapedLine(name), 64))
	text := "There is no header " + name + "."
	if meant := nearest.Name(rest, names); meant != "" {
		text += " Did you mean " + strings.ToLower(ourPrefix+meant) + "?"
	} else {
		text += " There are " + strings.ToLower(ourPrefix) + strings.ToLower(strings.Join(names, ", -")) + "."
	}
	return &refused{Trouble: troubleMalformed, Param: name, Text: text}
}

// requestHeaders are the headers that belong to a request itself, per protocol:
// what the body means depends on them. All others are between a client and the
// gateway: credentials and accounts above all, cookies, forwarding, what SDKs
// tell of themselves.
var requestHeaders = map[ninelives.Protocol][]string{
	ninelives.AnthropicMessages: {"Anthropic-Beta", "Anthropic-Version"},
	ninelives.OpenAIChat:        {"Openai-Beta"},
	ninelives.OpenAIResponses:   {"Openai-Beta", "X-Codex-Beta-Features"},
}

// maxForwarded bounds the value of a header that is sent on, in bytes.
const maxForwarded = 4 << 10

// forUpstream gives the headers of a request that are sent on with its bytes;
// nil if there are none. Their names are in lower case.
func forUpstream(h http.Header, p ninelives.Protocol) map[string]string {
	var sent map[string]string
	for _, name := range requestHeaders[p] {
		v := strings.Join(h[name], ", ")
		if v == "" || len(v) > maxForwarded || !isPrintable(v) {
			continue
		}
		if sent == nil {
			sent = make(map[string]string, 2)
		}
		sent[strings.ToLower(name)] = v
	}
	return sent
}
