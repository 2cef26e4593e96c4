// Package wiretest replays recorded exchanges with providers against the
// decoders of the protocol packages. The recordings are read where they lie;
// without them the tests skip.
package wiretest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Exchange is one recorded exchange: what was sent, what came back, and what a
// correct client makes of it.
type Exchange struct {
	// Name is "provider/exchange".
	Name     string
	Provider string
	Protocol ninelives.Protocol
	// Model is the model name of the recording; it may be empty.
	Model string
	// Stream says that the answer is a stream.
	Stream   bool
	Features []string

	// Host and Path are where the request went; Host may be empty.
	Host string
	Path string
	// Request is the request body; nil where the source kept none.
	Request []byte

	Status int
	Header http.Header
	Body   []byte
	// Chunks are the sizes of the pieces as they were received; nil where unknown.
	Chunks []int

	Expect Expect
}

// Expect is what a correct client decodes.
type Expect struct {
	Text           string   `json:"text"`
	Reasoning      string   `json:"reasoning_text"`
	TextParts      []string `json:"text_parts"`
	ReasoningParts []string `json:"reasoning_parts"`
	Refusal        *string  `json:"refusal_text"`
	ToolCalls      []Call   `json:"tool_calls"`
	FinishRaw      *string  `json:"finish_reason_raw"`
	Usage          *Usage   `json:"usage"`
	Complete       bool     `json:"complete"`
	Error          *Error   `json:"error"`
	StreamError    *Error   `json:"stream_error"`
	BlockReason    *string  `json:"block_reason"`
}

// Call is an expected tool call. Raw is its arguments as they came.
type Call struct {
	ID        *string         `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Raw       string          `json:"arguments_raw"`
	Valid     bool            `json:"arguments_valid"`
}

// Usage is the expected counts; nil means that the provider did not report it.
type Usage struct {
	Input      *int `json:"input"`
	Output     *int `json:"output"`
	Reasoning  *int `json:"reasoning"`
	Cached     *int `json:"cached"`
	CacheWrite *int `json:"cache_write"`
}

// Error is an expected error. Kind is the recording's own label.
type Error struct {
	Status  *int            `json:"http_status"`
	Type    *string         `json:"type"`
	Code    json.RawMessage `json:"code"`
	Message *string         `json:"message"`
	Kind    string          `json:"kind"`
}

// Root is where the recordings lie: NINELIVES_RECORDINGS, or
// ../shared/recordings beside the repository.
func Root() string {
	if dir := os.Getenv("NINELIVES_RECORDINGS"); dir != "" {
		return dir
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "shared", "recordings")
}

// Exchanges loads the recordings of one protocol, sorted by name. The test is
// skipped if there are none to read.
func Exchanges(t testing.TB, protocol ninelives.Protocol) []Exchange {
	t.Helper()
	root := Root()
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no recordings at %s: set NINELIVES_RECORDINGS to run this test", root)
	}
	metas, err := filepath.Glob(filepath.Join(root, "*", "*", "meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(metas)
	var list []Exchange
	for _, meta := range metas {
		if ex, ok := load(t, filepath.Dir(meta), protocol); ok {
			list = append(list, ex)
		}
	}
	if len(list) == 0 {
		t.Skipf("no recordings of protocol %s at %s", protocol, root)
	}
	return list
}

func load(t testing.TB, dir string, protocol ninelives.Protocol) (Exchange, bool) {
	t.Helper()
	var meta struct {
		Provider string   `json:"provider"`
		Protocol string   `json:"protocol"`
		Model    *string  `json:"model"`
		Stream   bool     `json:"stream"`
		Features []string `json:"features"`
	}
	read(t, filepath.Join(dir, "meta.json"), &meta)
	if ninelives.Protocol(meta.Protocol) != protocol {
		return Exchange{}, false
	}
	ex := Exchange{
		Name:     filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir),
		Provider: meta.Provider,
		Protocol: protocol,
		Stream:   meta.Stream,
		Features: meta.Features,
		Header:   http.Header{},
	}
	if meta.Model != nil {
		ex.Model = *meta.Model
	}

	var request struct {
		Host     *string `json:"host"`
		Path     *string `json:"path"`
		BodyFile *string `json:"body_file"`
	}
	read(t, filepath.Join(dir, "request.json"), &request)
	if request.Host != nil {
		ex.Host = *request.Host
	}
	if request.Path != nil {
		ex.Path = *request.Path
	}
	if request.BodyFile != nil {
		ex.Request = bytesOf(t, filepath.Join(dir, *request.BodyFile))
	}

	var response struct {
		Status   int                        `json:"status"`
		Headers  map[string]json.RawMessage `json:"headers"`
		BodyFile string                     `json:"body_file"`
		Chunks   []int                      `json:"chunk_bytes"`
	}
	read(t, filepath.Join(dir, "response.json"), &response)
	ex.Status, ex.Chunks = response.Status, response.Chunks
	for name, raw := range response.Headers {
		var many []string
		if json.Unmarshal(raw, &many) != nil {
			many = make([]string, 1)
			if err := json.Unmarshal(raw, &many[0]); err != nil {
				t.Fatalf("%s: header %s: %v", dir, name, err)
			}
		}
		for _, v := range many {
			ex.Header.Add(name, v)
		}
	}
	ex.Body = bytesOf(t, filepath.Join(dir, response.BodyFile))
	read(t, filepath.Join(dir, "expect.json"), &ex.Expect)
	return ex, true
}

func read(t testing.TB, file string, into any) {
	t.Helper()
	if err := json.Unmarshal(bytesOf(t, file), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func bytesOf(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Has reports whether the recording carries a feature word.
func (ex Exchange) Has(feature string) bool {
	for _, f := range ex.Features {
		if f == feature {
			return true
		}
	}
	return false
}

// Replay is one way to cut the body into reads.
type Replay struct {
	Name   string
	pieces [][]byte
}

// Reader reads the body anew, one piece per read.
func (r Replay) Reader() io.Reader { return &pieceReader{pieces: r.pieces} }

// Replays are the ways in which a body must decode alike: in one read, in the
// pieces that were recorded (else seven bytes each), and byte by byte.
func (ex Exchange) Replays() []Replay {
	return []Replay{
		{"whole", [][]byte{ex.Body}},
		{"pieces", Cut(ex.Body, ex.Chunks)},
		{"bytes", Every(ex.Body, 1)},
	}
}

// Cut cuts body into pieces of the given sizes; without sizes, or where they
// do not add up, into seven bytes each.
func Cut(body []byte, sizes []int) [][]byte {
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	if sum != len(body) {
		return Every(body, 7)
	}
	var pieces [][]byte
	for _, n := range sizes {
		pieces = append(pieces, body[:n])
		body = body[n:]
	}
	return pieces
}

// Every cuts body into pieces of n bytes.
func Every(body []byte, n int) [][]byte {
	var pieces [][]byte
	for len(body) > n {
		pieces = append(pieces, body[:n])
		body = body[n:]
	}
	if len(body) > 0 {
		pieces = append(pieces, body)
	}
	return pieces
}

// Pieces is a reader that gives one of the pieces, or what fits of it, per read.
func Pieces(pieces [][]byte) io.Reader { return &pieceReader{pieces: pieces} }

type pieceReader struct {
	pieces [][]byte
	at     int // in pieces[0]
}

func (r *pieceReader) Read(p []byte) (int, error) {
	for len(r.pieces) > 0 && r.at == len(r.pieces[0]) {
		r.pieces, r.at = r.pieces[1:], 0
	}
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0][r.at:])
	r.at += n
	return n, nil
}
