package acp

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/ninelives-ai/ninelives/chaos"
)

// raw is an editor that writes lines by hand.
type raw struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	served chan error
	dir    string
}

func (s *stage) wire() *raw {
	in, editor := io.Pipe()
	agent, out := io.Pipe()
	r := &raw{t: s.t, dir: s.dir, in: editor, out: bufio.NewReader(agent), served: make(chan error, 1)}
	go func() {
		r.served <- Serve(context.WithoutCancel(s.t.Context()), in, out, s.config())
		out.Close()
	}()
	return r
}

func (r *raw) say(lines ...string) {
	for _, l := range lines {
		io.WriteString(r.in, l+"\n")
	}
}

func (r *raw) hear() string {
	l, err := r.out.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(l, "\n")
}

// newSession opens a session and gives its id.
func (r *raw) newSession() string {
	r.say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"` + r.dir + `","mcpServers":[]}}`)
	_, id, _ := strings.Cut(r.hear(), `"sessionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	r.hear() // the commands
	return id
}

func (r *raw) leave() {
	r.in.Close()
	rest, _ := io.ReadAll(r.out)
	if len(rest) > 0 {
		r.t.Errorf("left over: %s", rest)
	}
	if err := <-r.served; err != nil {
		r.t.Error(err)
	}
}

const greeting = `{"jsonrpc":"2.0","id":"hi","method":"initialize","params":{"protocolVersion":1}}`

// Whatever comes is answered as JSON-RPC says, and the next message is read.
func TestMessagesThatAreNone(t *testing.T) {
	r := newStage(t).wire()
	r.say(greeting)
	r.hear()
	for _, c := range []struct{ line, answer string }{
		{`{`, `{"error":{"code":-32700,"message":"Parse error","data":{"error":"the message is no JSON"}},"id":null,"jsonrpc":"2.0"}`},
		{`hello`, `{"error":{"code":-32700,"message":"Parse error","data":{"error":"the message is no JSON"}},"id":null,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, `{"error":{"code":-32700,"message":"Parse error","data":{"error":"the message is no JSON"}},"id":null,"jsonrpc":"2.0"}`},
		{`[{"jsonrpc":"2.0","id":1,"method":"x"}]`, `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"batches are not part of this protocol: send one message a line"}},"id":null,"jsonrpc":"2.0"}`},
		{`7`, `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"a message is a JSON object"}},"id":null,"jsonrpc":"2.0"}`},
		{`{"id":1,"method":"initialize"}`, `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"\"jsonrpc\" must be \"2.0\""}},"id":1,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":1}`, `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"\"method\" must be the name of a method"}},"id":1,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":{},"method":"initialize"}`, `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"an id is a string or a number"}},"id":null,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":"a\u0000b","method":"session/dance"}`, `{"error":{"code":-32601,"message":"Method not found","data":{"method":"session/dance"}},"id":"a\u0000b","jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":3,"method":"_zed/thing"}`, `{"error":{"code":-32601,"message":"Method not found","data":{"method":"_zed/thing"}},"id":3,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":4,"method":"session/new","params":[]}`, `{"error":{"code":-32602,"message":"the parameters cannot be read: json: cannot unmarshal array into Go value of type acp.NewSessionRequest"},"id":4,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":5,"method":"session/new"}`, `{"error":{"code":-32602,"message":"cwd is required"},"id":5,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":6,"method":"session/prompt","params":{"sessionId":"nope","prompt":[]}}`, `{"error":{"code":-32002,"message":"the session \"nope\" is not open here: load it, or begin a new one"},"id":6,"jsonrpc":"2.0"}`},
		{"\n \r\n" + `{"jsonrpc":"2.0","id":null,"method":"authenticate","params":{"methodId":"a"}}` + "\r", `{"error":{"code":-32602,"message":"there is nothing to sign in to: the keys of the providers are in the environment or in the configuration"},"id":null,"jsonrpc":"2.0"}`},
		// Nobody waits for an answer to these; the last has one.
		{`{"jsonrpc":"2.0","method":"session/dance"}` + "\n" + `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nope"}}` + "\n" +
			`{"jsonrpc":"2.0","id":99,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}` + "\n" +
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":77}}` + "\n" + `{"jsonrpc":"2.0","id":8,"method":"x"}`,
			`{"error":{"code":-32601,"message":"Method not found","data":{"method":"x"}},"id":8,"jsonrpc":"2.0"}`},
	} {
		r.say(c.line)
		if got := r.hear(); got != c.answer {
			t.Errorf("to %s\n got %s\nwant %s", c.line, got, c.answer)
		}
	}
	r.leave()
}

func TestInitializeComesFirst(t *testing.T) {
	r := newStage(t).wire()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	if got, want := r.hear(), `{"error":{"code":-32600,"message":"call initialize first"},"id":1,"jsonrpc":"2.0"}`; got != want {
		t.Errorf("%s", got)
	}
	r.leave()
}

// A message that is too long is refused by its id, and the next one is read.
func TestAHugeMessageIsRefused(t *testing.T) {
	r := newStage(t).wire()
	r.say(greeting)
	r.hear()
	go func() {
		io.WriteString(r.in, `{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"x":"`)
		block := strings.Repeat("x", 1<<20)
		for range maxMessage>>20 + 1 {
			io.WriteString(r.in, block)
		}
		r.say(`"}}`, `{"jsonrpc":"2.0","id":6,"method":"x"}`)
	}()
	if got, want := r.hear(), `{"error":{"code":-32600,"message":"Invalid request","data":{"error":"the message is longer than 64 MB, which is the most that is read"}},"id":5,"jsonrpc":"2.0"}`; got != want {
		t.Errorf("%s", got)
	}
	if got := r.hear(); !strings.Contains(got, `"id":6,`) {
		t.Errorf("%s", got)
	}
	r.leave()
}

// What was asked before the input ended is answered, the last line without its
// line feed too.
func TestTheLastLineIsAnswered(t *testing.T) {
	r := newStage(t).wire()
	go func() { io.WriteString(r.in, greeting); r.in.Close() }()
	if got := r.hear(); !strings.HasSuffix(got, `"protocolVersion":1}}`) {
		t.Errorf("%s", got)
	}
	r.leave()
}

// A cancel that comes right behind its prompt, before the turn has begun, still
// stops it; the input is recorded all the same.
func TestACancelNeverOvertakesItsPrompt(t *testing.T) {
	s := newStage(t, chaos.Step{Drop: chaos.Hang}).records()
	r := s.wire()
	r.say(greeting)
	r.hear()
	for range 20 {
		id := r.newSession()
		r.say(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"`+id+`","prompt":[{"type":"text","text":"x"}]}}`,
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"`+id+`"}}`)
		if got, want := r.hear(), `{"id":2,"jsonrpc":"2.0","result":{"stopReason":"cancelled"}}`; got != want {
			t.Fatalf("%s", got)
		}
		_, entries, _, err := s.journal.ReadSession(t.Context(), id)
		if err != nil || len(entries) < 2 || entries[1].Kind != "input" {
			t.Fatalf("%+v, %v", entries, err)
		}
	}
	r.leave()
}

// A mistake of the program in one request is the error of that request.
func TestAPanicEndsARequestAndNoMore(t *testing.T) {
	s := newStage(t)
	c := s.config()
	in, editor := io.Pipe()
	agent, out := io.Pipe()
	r := &raw{t: t, in: editor, out: bufio.NewReader(agent), served: make(chan error, 1)}
	c.Open = func(context.Context, Opening) (Handle, error) { panic("oh\nno") }
	go func() { r.served <- Serve(t.Context(), in, out, c); out.Close() }()
	r.say(greeting)
	r.hear()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"` + s.dir + `","mcpServers":[]}}`)
	if got, want := r.hear(), `{"error":{"code":-32603,"message":"the program made a mistake (oh no); what was recorded is kept"},"id":1,"jsonrpc":"2.0"}`; got != want {
		t.Errorf("%s", got)
	}
	r.leave()
}

// An editor that takes back its request for a prompt has cancelled the prompt.
func TestACancelledRequestStopsItsPrompt(t *testing.T) {
	s := newStage(t, chaos.Step{Drop: chaos.Hang})
	r := s.wire()
	r.say(greeting)
	r.hear()
	id := r.newSession()
	r.say(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"`+id+`","prompt":[{"type":"text","text":"x"}]}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}`)
	if got, want := r.hear(), `{"id":"p","jsonrpc":"2.0","result":{"stopReason":"cancelled"}}`; got != want {
		t.Errorf("%s", got)
	}
	r.leave()
}
