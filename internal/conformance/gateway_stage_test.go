package conformance_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/config"
	"github.com/ninelives-ai/ninelives/gateway"
)

// face is a protocol as a client of the gateway speaks it.
type face struct {
	protocol      ninelives.Protocol
	path, piece   string // where it asks: for a stream, for one piece
	body          string // %s is the prompt in quotes, then what is added
	stream, tools string // what is added to ask for a stream, and to offer a tool
	// translated is a protocol of servers that differs.
	translated ninelives.Protocol
	// Its words for how an answer ends, and for failures.
	stop, length, called, filtered, declined string
	exhausted                                int // the status when all was tried
}

const aTool = `"name":"write_file","description":"Writes a file."`
const itsSchema = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`

var faces = []face{
	{
		protocol: ninelives.OpenAIChat, path: "/v1/chat/completions", translated: ninelives.AnthropicMessages,
		body: `{"model":"any","messages":[{"role":"user","content":%s}]%s}`, stream: `,"stream":true,"stream_options":{"include_usage":true}`,
		tools: `,"tools":[{"type":"function","function":{` + aTool + `,"parameters":` + itsSchema + `}}]`,
		stop:  "stop", length: "length", called: "tool_calls", filtered: "content_filter", declined: "stop", exhausted: 503,
	},
	{
		protocol: ninelives.AnthropicMessages, path: "/v1/messages", translated: ninelives.OpenAIChat,
		body: `{"model":"any","max_tokens":4096,"messages":[{"role":"user","content":%s}]%s}`, stream: `,"stream":true`,
		tools: `,"tools":[{` + aTool + `,"input_schema":` + itsSchema + `}]`,
		stop:  "end_turn", length: "max_tokens", called: "tool_use", filtered: "refusal", declined: "refusal", exhausted: 529,
	},
	{
		protocol: ninelives.OpenAIResponses, path: "/v1/responses", translated: ninelives.AnthropicMessages,
		body: `{"model":"any","input":%s%s}`, stream: `,"stream":true`,
		tools: `,"tools":[{"type":"function",` + aTool + `,"parameters":` + itsSchema + `}]`,
		stop:  "completed", length: "max_output_tokens", called: "completed", filtered: "content_filter", declined: "completed", exhausted: 503,
	},
	{
		protocol: ninelives.Gemini, path: "/v1beta/models/any:streamGenerateContent?alt=sse", piece: "/v1beta/models/any:generateContent", translated: ninelives.OpenAIChat,
		body:  `{"contents":[{"role":"user","parts":[{"text":%s}]}]%s}`,
		tools: `,"tools":[{"functionDeclarations":[{` + aTool + `,"parameters":` + itsSchema + `}]}]`,
		stop:  "STOP", length: "MAX_TOKENS", called: "STOP", filtered: "SAFETY", declined: "SAFETY", exhausted: 503,
	},
}

// show is a gateway in front of the two providers of a stage, and a client of
// it that speaks one protocol.
type show struct {
	*stage
	face     face
	streamed bool
	client   *http.Client
	// relayed says that the providers speak the client's protocol: its bytes go
	// through, and an answer in one piece is asked for in one piece.
	relayed bool
}

// pieced says that the providers are asked for an answer in one piece: they are
// where they speak the client's protocol, else they are asked for a stream.
func (s *show) pieced() bool { return !s.streamed && s.relayed }

// pairs are the protocols of servers that a client of one protocol is tried with:
// all, or its own and another one, as under the race detector, which makes them
// slow.
func (f face) pairs(all bool) []ninelives.Protocol {
	if !all || underRace {
		return []ninelives.Protocol{f.protocol, f.translated}
	}
	return protocols
}

// raise raises the curtain for one client.
func raise(t *testing.T, s script, f face, upstream ninelives.Protocol, streamed bool, test func(*show)) {
	t.Helper()
	name := string(f.protocol) + " to " + string(upstream)
	if !streamed {
		name += " in one piece"
	}
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sh := &show{stage: &stage{T: t, protocol: upstream}, face: f, streamed: streamed, relayed: f.protocol == upstream}
			_, first, second := sh.set(s)
			policy, err := config.GatewayPreset(cmp.Or(s.preset, "interactive"))
			if err != nil {
				t.Fatal(err)
			}
			if s.policy != nil {
				s.policy(&policy)
			}
			targets := []gateway.Target{{Model: first}, {Model: second}}
			if s.alone {
				targets = targets[:1]
			}
			route := gateway.Route{Name: "cats", Targets: targets, Policy: &policy}
			g := gateway.New(gateway.Settings{Routes: []gateway.Route{route}}, gateway.Options{})
			if s.inside {
				sh.client = &http.Client{Transport: g.Transport()}
				t.Cleanup(g.Close)
				sh.began = time.Now()
				test(sh)
				return
			}
			ctx, stop := context.WithCancel(context.Background())
			listener := newPipes()
			served := make(chan error, 1)
			go func() { served <- g.Serve(ctx, time.Second, listener) }()
			sh.client = &http.Client{Transport: &http.Transport{DialContext: listener.dial, DisableCompression: true}}
			t.Cleanup(func() {
				sh.client.CloseIdleConnections()
				stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
				g.Close()
			})
			sh.began = time.Now()
			test(sh)
		})
	})
}

// heard is one call as a client of the gateway heard it.
type heard struct {
	understood
	status          int
	header, trailer http.Header
	body            []byte
	err             error // of the connection
	took            time.Duration
}

// ask makes the usual call and reads its answer to the end.
func (s *show) ask() heard {
	s.Helper()
	return s.send(s.Context(), prompt, "")
}

// send makes a call; more is put into its body. Whatever comes of it, a client
// must be able to read it.
func (s *show) send(ctx context.Context, said, more string) (h heard) {
	s.Helper()
	start := time.Now()
	path := s.face.path
	if s.streamed {
		more = s.face.stream + more
	} else {
		path = cmp.Or(s.face.piece, path)
	}
	quoted, _ := json.Marshal(said)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:9009"+path, strings.NewReader(fmt.Sprintf(s.face.body, quoted, more)))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return heard{err: err, took: time.Since(start)}
	}
	defer resp.Body.Close()
	h.body, h.err = io.ReadAll(resp.Body)
	h.took = time.Since(start)
	h.status, h.header, h.trailer = resp.StatusCode, resp.Header, resp.Trailer
	if ctx.Err() != nil {
		return h // it has left
	}
	var v any
	switch {
	case h.status != http.StatusOK:
		h.understood = readError(s.face.protocol, h.status, h.body)
		if (h.header.Get("Retry-After") == "") == (h.header.Get("X-Should-Retry") == "") {
			h.trip("whether to ask again is not said, or twice: %v", h.header)
		}
	case s.streamed:
		h.understood = readStream(s.face.protocol, h.body, h.err)
	case h.err != nil:
		h.trip("a whole answer, cut: %v", h.err)
	case json.Unmarshal(h.body, &v) != nil:
		h.trip("no JSON")
	default:
		h.understood = readWhole(s.face.protocol, v)
	}
	if s := string(h.body); strings.Contains(s, "sk-not-for-anyone") || strings.Contains(s, ".sim/") {
		h.trip("it says what is nobody's business")
	}
	if len(h.wrong) > 0 {
		s.Errorf("a client trips over this:\n%s\nstatus %d\n%s", strings.Join(h.wrong, "\n"), h.status, h.body)
	}
	return h
}

// answered holds that the client has the sixty words, each once, as a plain
// success of the candidate with that index, with what they cost and the name of
// the model that said them. begun says that another one had begun to say them:
// the client keeps the name that it was told at first, and the truth follows.
func (s *show) answered(h heard, served int, begun bool) {
	s.Helper()
	if h.status != http.StatusOK || !h.ended {
		s.Fatalf("no answer: status %d, %v\n%s", h.status, h.err, h.body)
	}
	equal(s, "text", h.text, chaos.Answer)
	equal(s, "finish", h.finish, s.face.stop)
	name := s.names[served]
	if begun {
		name = s.names[0]
	}
	_, model, _ := strings.Cut(name, "/")
	equal(s, "model", strings.TrimPrefix(h.model, "sim/"), model)
	equal(s, "served by, as told", s.told(h, "Candidate"), s.names[served])
}

// cost holds what the answer cost, as its provider counts.
func (s *show) cost(h heard, input, output int) {
	s.Helper()
	equal(s, "usage", []int{h.input, h.output}, []int{input, output})
}

// told is what the client is told in a header of ours, at the end.
func (s *show) told(h heard, name string) string {
	return cmp.Or(h.trailer.Get("X-Ninelives-"+name), h.header.Get("X-Ninelives-"+name))
}

// exhausted holds that the client was told, in its protocol's words, that all
// was tried, and that nothing could be taken for an answer.
func (s *show) exhausted(h heard) {
	s.Helper()
	words := map[ninelives.Protocol]string{ninelives.OpenAIChat: "server_is_overloaded", ninelives.OpenAIResponses: "server_is_overloaded",
		ninelives.AnthropicMessages: "overloaded_error", ninelives.Gemini: "UNAVAILABLE"}
	equal(s, "status and error", fmt.Sprint(h.status, " ", h.failure), fmt.Sprint(s.face.exhausted, " ", words[s.face.protocol]))
	equal(s, "text", h.text, "")
}

// settle waits until both providers have noted what was asked of them.
func (s *show) settle() {
	s.primary.Wait()
	s.fallback.Wait()
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
