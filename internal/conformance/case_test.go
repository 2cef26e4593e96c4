package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fault is one case of the corpus of wire faults.
type fault struct {
	ID            string            `json:"id"`
	Provider      string            `json:"provider"`
	When          string            `json:"when"` // http, stream, request
	Dialect       string            `json:"dialect"`
	Stream        bool              `json:"stream"`
	Status        int               `json:"status"`
	Headers       map[string]string `json:"headers"`
	Body          string            `json:"body"`
	SSE           *string           `json:"sse"`
	Transport     transport         `json:"transport"`
	Request       json.RawMessage   `json:"request"`
	Healed        json.RawMessage   `json:"healed_request"`
	RejectIf      *predicate        `json:"reject_if"`
	SecondRequest string            `json:"second_request"`
	Window        int               `json:"context_window"`
	ToolSchema    json.RawMessage   `json:"tool_schema"`
	Requires      string            `json:"requires"`
	Expect        expectation       `json:"expect"`
}

type expectation struct {
	Class      string          `json:"class"`
	RetryAfter *float64        `json:"retry_after_ms"`
	Text       *string         `json:"text"`
	Reasoning  *string         `json:"reasoning"`
	ToolCalls  *[]expectedCall `json:"tool_calls"`
	Finish     *string         `json:"finish"`
	Refusal    *string         `json:"refusal"`
}

type expectedCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// transport says how the bytes travel.
type transport struct {
	Pre             string          `json:"pre"`
	End             string          `json:"end"`
	Cuts            json.RawMessage `json:"cuts"`
	HTTP2           bool            `json:"http2"`
	DelayBefore     int             `json:"delay_before_ms"`
	Hold            int             `json:"hold_ms"`
	ContentEncoding string          `json:"content_encoding"`
	Repeat          *struct {
		Bytes string `json:"bytes"`
		Every int    `json:"every_ms"`
		Times int    `json:"times"`
	} `json:"repeat"`
}

// corpus is where the corpus of wire faults is.
func corpus() string {
	if path := os.Getenv("NINELIVES_CASES"); path != "" {
		return path
	}
	return filepath.Join("..", "..", "..", "shared", "cases", "wire-faults.jsonl")
}

// ownFaults are the cases of this package.
func ownFaults(t *testing.T) []fault {
	return readFaults(t, filepath.Join("testdata", "own-faults.jsonl"))
}

// allFaults are those of this package and those of the corpus, if it is here.
func allFaults(t *testing.T) []fault {
	cases := ownFaults(t)
	if _, err := os.Stat(corpus()); err == nil {
		cases = append(cases, readFaults(t, corpus())...)
	}
	return cases
}

// loadFaults reads the corpus, or skips the test.
func loadFaults(t *testing.T) []fault {
	t.Helper()
	path := corpus()
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the corpus of wire faults is not here (%v); set NINELIVES_CASES to run it", err)
	}
	return readFaults(t, path)
}

func readFaults(t *testing.T, path string) []fault {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []fault
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var c fault
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s:%d: %v", path, len(cases)+1, err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", path)
	}
	return cases
}

// clone copies a case deeply enough for a mutation.
func (c fault) clone() fault {
	c.Headers = maps.Clone(c.Headers)
	if c.SSE != nil {
		s := *c.SSE
		c.SSE = &s
	}
	return c
}

// payload is what is sent as the body.
func (c fault) payload() string {
	if c.SSE != nil {
		return *c.SSE
	}
	return c.Body
}

var placeholder = regexp.MustCompile(`\{\{(HTTPDATE|EPOCHMS)\+(\d+)s\}\}`)

// fill writes the dates that a case leaves open.
func fill(s string, now time.Time) string {
	return placeholder.ReplaceAllStringFunc(s, func(p string) string {
		m := placeholder.FindStringSubmatch(p)
		n, _ := strconv.Atoi(m[2])
		at := now.Add(time.Duration(n) * time.Second)
		if m[1] == "HTTPDATE" {
			return at.UTC().Format(http.TimeFormat)
		}
		return strconv.FormatInt(at.UnixMilli(), 10)
	})
}

// The ways in which the bytes of a case are written.
const (
	oneWrite  = "one write"
	ownPieces = "own pieces"
	eachByte  = "each byte"
)

// pieces splits a payload into the writes of a mode.
func (tr transport) pieces(payload []byte, mode string) [][]byte {
	var at []int
	switch mode {
	case oneWrite:
	case eachByte:
		at = every(len(payload), 1)
	default:
		at = tr.cuts(payload)
	}
	var out [][]byte
	from := 0
	for _, i := range append(at, len(payload)) {
		if i > from && i <= len(payload) {
			out = append(out, payload[from:i])
			from = i
		}
	}
	return out
}

// cuts are the places where a case wants its payload to be cut; without any,
// the ends of its events or lines.
func (tr transport) cuts(payload []byte) []int {
	var offsets []int
	if json.Unmarshal(tr.Cuts, &offsets) == nil && len(offsets) > 0 {
		return offsets
	}
	var words string
	_ = json.Unmarshal(tr.Cuts, &words)
	var n int
	switch {
	case words == "every byte":
		return every(len(payload), 1)
	case words == "after every CR":
		return after(payload, '\r')
	case words != "":
		if _, err := fmt.Sscanf(words, "every %d bytes", &n); err == nil {
			return every(len(payload), n)
		}
		panic("unknown cuts: " + words)
	}
	for i := range payload {
		if i > 0 && payload[i-1] == '\n' && payload[i] == '\n' {
			offsets = append(offsets, i+1)
		}
	}
	if offsets == nil {
		offsets = every(len(payload), 64)
	}
	return offsets
}

func every(length, n int) []int {
	var at []int
	for i := n; i < length; i += n {
		at = append(at, i)
	}
	return at
}

func after(payload []byte, b byte) []int {
	var at []int
	for i, c := range payload {
		if c == b {
			at = append(at, i+1)
		}
	}
	return at
}
