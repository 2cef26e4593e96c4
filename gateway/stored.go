package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// The bounds of what is kept of Responses.
//
// Source of the days: OpenAI keeps stored responses for 30.
const (
	storedEntries = 1000
	storedBytes   = 64 << 20
	storedFor     = 30 * 24 * time.Hour
	storedDepth   = 1000 // responses that one may go on from
)

// storedResponse is an answer of the Responses protocol that a client may come
// back to.
type storedResponse struct {
	ID string
	// Previous is the id of the response that it went on from; empty if none.
	Previous string
	// Input is the JSON array of the request's own items, without what came before.
	Input []byte
	// Object is the response as clients are shown it.
	Object []byte
	// Answer is what the model said, with the provenance that Object does not
	// show; nil where only Object is known, or nothing was said yet.
	Answer *ninelives.Message
}

// storedOf makes one of a request's body, as the client sent it, and its answer.
func storedOf(body, object []byte, answer *ninelives.Message) storedResponse {
	return storedResponse{
		ID:       rawjson.String(rawjson.Get(object, "id")),
		Previous: rawjson.String(rawjson.Get(body, "previous_response_id")),
		Input:    ownItems(body), Object: object, Answer: answer,
	}
}

// storing says that the client wants its response to be kept, which is what the
// protocol does unless it is told not to.
func storing(body []byte) bool {
	store, said := rawjson.Bool(rawjson.Get(body, "store"))
	return store || !said
}

// ownItems gives the input of a request as a list of items.
func ownItems(body []byte) []byte {
	input := rawjson.Get(body, "input")
	switch rawjson.Kind(input) {
	case '[':
		return append([]byte(nil), input...)
	case '"':
		var w rawjson.Writer
		w.Open('[')
		w.Open('{')
		w.StringMember("type", "message")
		w.StringMember("role", "user")
		w.RawMember("content", input)
		w.Close('}')
		w.Close(']')
		return w.B
	}
	return []byte("[]")
}

// responseStore keeps responses, each for the client who made it. Nobody else is
// told so much as that they exist.
//
// A response holds on to the one that it went on from: a conversation stays
// whole as long as its last response is kept, whatever was deleted or forgotten
// by name. What is held on to counts until nothing needs it any more.
type responseStore struct {
	// recall, if set, finds a response of the client that is not in memory: one
	// from before a restart. It must not find what was erased.
	recall func(ctx context.Context, client, id string) (storedResponse, bool)
	// erase, if set, is told of a response that the client has deleted.
	erase func(ctx context.Context, client, id string) error

	mu    sync.Mutex
	names lru[storedName, *storedNode]
	bytes int // of all nodes that are held
	limit int
}

type storedName struct{ client, id string }

// storedNode is a kept response. Its holds are its name and the responses that
// went on from it.
type storedNode struct {
	storedResponse
	parent *storedNode
	holds  int
}

func newResponseStore() *responseStore {
	s := &responseStore{limit: storedBytes}
	s.names = lru[storedName, *storedNode]{entries: storedEntries, ttl: storedFor, left: func(_ storedName, n *storedNode) { s.release(n) }}
	return s
}

func (n *storedNode) size() int {
	answer := 0
	if n.Answer != nil {
		answer = len(n.Object) // about
	}
	return 512 + len(n.Input) + len(n.Object) + answer
}

func (s *responseStore) hold(n *storedNode) {
	for ; n != nil; n = n.parent {
		if n.holds++; n.holds > 1 {
			return
		}
		s.bytes += n.size()
	}
}

func (s *responseStore) release(n *storedNode) {
	for ; n != nil; n = n.parent {
		if n.holds--; n.holds > 0 {
			return
		}
		s.bytes -= n.size()
	}
}

// put keeps a response. previous is what it went on from, as expand gave it.
func (s *responseStore) put(now time.Time, client string, r storedResponse, previous *storedNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(now, client, &storedNode{storedResponse: r, parent: previous})
}

func (s *responseStore) keep(now time.Time, client string, n *storedNode) {
	s.hold(n)
	s.names.put(now, storedName{client, n.ID}, n, 0)
	for s.bytes > s.limit && s.names.shed() {
	}
}

// find gives a response and all that it went on from; nil if the client has none
// of this id, or a part of its conversation is lost.
func (s *responseStore) find(ctx context.Context, client, id string) *storedNode {
	var lost []storedResponse // what is not in memory, the latest first
	var n *storedNode
	for at := id; at != ""; {
		if n = s.inMemory(client, at); n != nil {
			break
		}
		if s.recall == nil || len(lost) == storedDepth {
			return nil
		}
		r, ok := s.recall(ctx, client, at)
		if !ok {
			return nil
		}
		lost = append(lost, r)
		at = r.Previous
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(lost) - 1; i >= 0; i-- {
		n = &storedNode{storedResponse: lost[i], parent: n}
		s.keep(time.Now(), client, n)
	}
	return n
}

func (s *responseStore) inMemory(client, id string) *storedNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.names.get(time.Now(), storedName{client, id})
	return n
}

// settle replaces the object of a response that is under way, and its answer if
// there is one. One that is over or deleted stays as it is; it reports whether
// it was replaced.
func (s *responseStore) settle(client, id string, object []byte, answer *ninelives.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.names.get(time.Now(), storedName{client, id})
	if !ok || !underWay(old.Object) {
		return false
	}
	n := &storedNode{storedResponse: old.storedResponse, parent: old.parent}
	n.Object, n.Answer = object, answer
	s.keep(time.Now(), client, n)
	return true
}

// underWay says that a response has not ended.
func underWay(object []byte) bool {
	status := rawjson.Get(object, "status")
	return rawjson.Is(status, "queued") || rawjson.Is(status, "in_progress")
}

// answered says that it has ended with an answer.
func answered(object []byte) bool {
	status := rawjson.Get(object, "status")
	return rawjson.Is(status, "completed") || rawjson.Is(status, "incomplete")
}

// expansion is a request that goes on from a stored response, made whole: what
// came before stands in it.
type expansion struct {
	// Body is the request with all items and without previous_response_id. Any
	// server of the protocol can answer it, whether it has seen the earlier
	// responses or not, unless there is reasoning of another protocol in our own
	// wrapping in it (wire.Marked), which only request takes off.
	Body []byte
	// Previous goes into put with the answer.
	Previous *storedNode
	own      []byte // the client's body
}

// expand makes a request whole that names a previous response; nil if it names
// none. Everything but previous_response_id and input stays as it is: the
// previous instructions are not carried over, which is the protocol's rule.
func (s *responseStore) expand(ctx context.Context, client string, body []byte) (*expansion, error) {
	id := rawjson.String(rawjson.Get(body, "previous_response_id"))
	if id == "" {
		return nil, nil
	}
	n := s.find(ctx, client, id)
	if n == nil {
		return nil, &refused{
			Trouble: troubleMalformed, Param: "previous_response_id", Code: "previous_response_not_found",
			Text: fmt.Sprintf("Previous response with id %.80q not found: send the whole conversation as input instead", id),
		}
	}
	if !answered(n.Object) {
		return nil, &refused{
			Trouble: troubleMalformed, Param: "previous_response_id",
			Text: fmt.Sprintf("The previous response %.80q has no answer to go on from: its status is %q", id, rawjson.String(rawjson.Get(n.Object, "status"))),
		}
	}
	var w rawjson.Writer
	w.Open('{')
	for m := range rawjson.Members(body) {
		switch string(m.Name) {
		case "previous_response_id", "input":
		default:
			w.Raw(m.Raw)
		}
	}
	w.Name("input")
	w.Open('[')
	for _, n := range n.conversation() {
		for item := range rawjson.Elements(n.Input) {
			w.Raw(item)
		}
		for item := range rawjson.Elements(rawjson.Get(n.Object, "output")) {
			writeAgain(&w, item)
		}
	}
	for item := range rawjson.Elements(ownItems(body)) {
		w.Raw(item)
	}
	w.Close(']')
	w.Close('}')
	return &expansion{Body: w.B, Previous: n, own: body}, nil
}

// conversation is the response and all that it went on from, the first one first.
func (n *storedNode) conversation() []*storedNode {
	var all []*storedNode
	for ; n != nil; n = n.parent {
		all = append(all, n)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// writeAgain writes an item of an earlier answer as one of a request that may go
// to another server than the one that gave it. That one would look in vain for
// the ids of messages and calls, and for reasoning of which there is no more than
// an id and a summary.
func writeAgain(w *rawjson.Writer, item []byte) {
	kind := rawjson.Get(item, "type")
	switch {
	case rawjson.Is(kind, "reasoning"):
		if !rawjson.Empty(rawjson.Get(item, "encrypted_content")) {
			w.Raw(item)
		}
	case rawjson.Is(kind, "message"), rawjson.Is(kind, "function_call"):
		at := w.Open('{')
		w.Rest(at, item, []string{"id"})
		w.Close('}')
	default:
		w.Raw(item)
	}
}

// request is the same in the vocabulary. Answers stand in it as their models
// gave them, so that their reasoning can be shown again to its maker.
func (x *expansion) request() (*ninelives.Request, error) {
	in, err := openai.DecodeResponsesRequest(x.Body)
	if err != nil {
		return nil, err
	}
	req := in.Request
	var history []ninelives.Message
	for _, n := range x.Previous.conversation() {
		if history, err = appendItems(history, n.Input); err != nil {
			return nil, err
		}
		if n.Answer != nil {
			history = append(history, *n.Answer)
		} else if history, err = appendItems(history, rawjson.Get(n.Object, "output")); err != nil {
			return nil, err
		}
	}
	if history, err = appendItems(history, ownItems(x.own)); err != nil {
		return nil, err
	}
	if rawjson.Kind(rawjson.Get(x.own, "instructions")) == '"' {
		history = append([]ninelives.Message{req.Messages[0]}, history...)
	}
	req.Messages = nameResults(history)
	return req, nil
}

// appendItems reads a list of items.
func appendItems(to []ninelives.Message, items []byte) ([]ninelives.Message, error) {
	var w rawjson.Writer
	w.Open('{')
	w.RawMember("input", items)
	w.Close('}')
	in, err := openai.DecodeResponsesRequest(w.B)
	if err != nil {
		return nil, err
	}
	return append(to, in.Request.Messages...), nil
}

// nameResults gives results of tools the names of the calls that they answer,
// which may lie in an earlier response.
func nameResults(messages []ninelives.Message) []ninelives.Message {
	names := map[string]string{}
	for _, m := range messages {
		for i, p := range m.Parts {
			switch p := p.(type) {
			case ninelives.ToolCall:
				names[p.ID] = p.Name
			case ninelives.ToolResult:
				if p.Name == "" {
					p.Name = names[p.CallID]
					m.Parts[i] = p
				}
			}
		}
	}
	return messages
}
