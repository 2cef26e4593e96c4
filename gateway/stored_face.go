package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// What clients can do with stored responses. Errors are *refused.

func noResponse(id string) error {
	return &refused{Trouble: troubleNotFound, Text: fmt.Sprintf("Response with id %.80q not found.", id)}
}

// retrieve is GET /v1/responses/{id}.
func (s *responseStore) retrieve(ctx context.Context, client, id string) ([]byte, error) {
	n := s.find(ctx, client, id)
	if n == nil {
		return nil, noResponse(id)
	}
	return n.Object, nil
}

// remove is DELETE /v1/responses/{id}. Responses that went on from it stay whole.
func (s *responseStore) remove(ctx context.Context, client, id string) ([]byte, error) {
	if s.find(ctx, client, id) == nil {
		return nil, noResponse(id)
	}
	if s.erase != nil {
		if err := s.erase(ctx, client, id); err != nil {
			return nil, fmt.Errorf("the response is not deleted: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names.drop(storedName{client, id})
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("id", id)
	w.StringMember("object", "response")
	w.BoolMember("deleted", true)
	w.Close('}')
	return w.B, nil
}

// The page of a list.
//
// Source: OpenAI's API reference, "List input items".
const (
	listLimit    = 20
	listMaxLimit = 100
)

// inputItems is GET /v1/responses/{id}/input_items: all that the model was
// shown but for instructions, what came before included. query may hold limit,
// order and after.
func (s *responseStore) inputItems(ctx context.Context, client, id string, query url.Values) ([]byte, error) {
	n := s.find(ctx, client, id)
	if n == nil {
		return nil, noResponse(id)
	}
	limit := listLimit
	if said := query.Get("limit"); said != "" {
		var err error
		if limit, err = strconv.Atoi(said); err != nil || limit < 1 || limit > listMaxLimit {
			return nil, &refused{Trouble: troubleMalformed, Param: "limit", Text: fmt.Sprintf("limit must be a number from 1 to %d", listMaxLimit)}
		}
	}
	items, ids := n.shown()
	switch query.Get("order") {
	case "asc":
	case "", "desc":
		slices.Reverse(items)
		slices.Reverse(ids)
	default:
		return nil, &refused{Trouble: troubleMalformed, Param: "order", Text: `order must be "asc" or "desc"`}
	}
	if after := query.Get("after"); after != "" {
		at := slices.Index(ids, after)
		if at < 0 {
			return nil, &refused{Trouble: troubleMalformed, Param: "after", Text: "after must be the id of an item of this list"}
		}
		items, ids = items[at+1:], ids[at+1:]
	}
	more := len(items) > limit
	if more {
		items, ids = items[:limit], ids[:limit]
	}
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("object", "list")
	w.Name("data")
	w.Open('[')
	for _, item := range items {
		w.Raw(item)
	}
	w.Close(']')
	for _, edge := range []struct {
		name string
		at   int
	}{{"first_id", 0}, {"last_id", len(ids) - 1}} {
		if len(ids) == 0 {
			w.RawMember(edge.name, []byte("null"))
		} else {
			w.StringMember(edge.name, ids[edge.at])
		}
	}
	w.BoolMember("has_more", more)
	w.Close('}')
	return w.B, nil
}

// shown gives the items of the input as a client is shown them, with their ids.
func (n *storedNode) shown() (items [][]byte, ids []string) {
	add := func(of *storedNode, item []byte) {
		id := rawjson.String(rawjson.Get(item, "id"))
		if id == "" {
			id = fmt.Sprintf("item_%s_%d", of.ID, len(items))
		}
		items, ids = append(items, shownItem(item, id)), append(ids, id)
	}
	for _, of := range n.conversation() {
		for item := range rawjson.Elements(of.Input) {
			add(of, item)
		}
		if of == n {
			break
		}
		for item := range rawjson.Elements(rawjson.Get(of.Object, "output")) {
			add(of, item)
		}
	}
	return items, ids
}

// shownItem is an item with its id, its type, and its text in a list.
func shownItem(item []byte, id string) []byte {
	var w rawjson.Writer
	at := w.Open('{')
	w.StringMember("id", id)
	skip := []string{"id"}
	if role := rawjson.String(rawjson.Get(item, "role")); role != "" {
		skip = append(skip, "type")
		w.StringMember("type", "message")
		if content := rawjson.Get(item, "content"); rawjson.Kind(content) == '"' {
			skip = append(skip, "content")
			w.Name("content")
			w.Open('[')
			w.Open('{')
			kind := "input_text"
			if role == "assistant" {
				kind = "output_text"
			}
			w.StringMember("type", kind)
			w.RawMember("text", content)
			w.Close('}')
			w.Close(']')
		}
	}
	w.Rest(at, item, skip)
	w.Close('}')
	return w.B
}

// errResponseCancelled is why a call ends that its client has cancelled.
var errResponseCancelled = &refused{Trouble: troubleCanceled, Text: "the client has cancelled the response"}

// cancel is POST /v1/responses/{id}/cancel: it ends a response that is under
// way, and gives what is left of it.
func (s *responseStore) cancel(ctx context.Context, v *live, client, id string) ([]byte, error) {
	n := s.find(ctx, client, id)
	l, err := v.call(client, id)
	if n == nil && err != nil {
		return nil, noResponse(id)
	}
	if n != nil && underWay(n.Object) {
		// Settled first: the call that is stopped would say that it failed.
		object := backgroundHead(n.Object, "cancelled").encode()
		if s.settle(client, id, object, nil) {
			if l != nil {
				l.stop(errResponseCancelled)
			}
			return object, nil
		}
	}
	if n == nil && l.stop(errResponseCancelled) { // it is streamed, and was to be stored at its end
		return backgroundObject{ID: id, Status: "cancelled"}.encode(), nil
	}
	return nil, &refused{Trouble: troubleMalformed, Text: "Cannot cancel a completed response."}
}

// backgroundObject is what a response without an answer says of itself.
type backgroundObject struct {
	ID       string
	Model    string
	Created  time.Time
	Previous string
	// Status is queued, in_progress, failed or cancelled.
	Status string
	// Code and Message say why it failed.
	Code, Message string
}

// backgroundHead reads the head of one.
func backgroundHead(object []byte, status string) backgroundObject {
	created, _ := rawjson.Int(rawjson.Get(object, "created_at"))
	return backgroundObject{
		ID: rawjson.String(rawjson.Get(object, "id")), Model: rawjson.String(rawjson.Get(object, "model")),
		Previous: rawjson.String(rawjson.Get(object, "previous_response_id")), Created: time.Unix(created, 0), Status: status,
	}
}

func (o backgroundObject) encode() []byte {
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("id", o.ID)
	w.StringMember("object", "response")
	created := int64(0)
	if !o.Created.IsZero() {
		created = o.Created.Unix()
	}
	w.IntMember("created_at", created)
	w.StringMember("status", o.Status)
	w.BoolMember("background", true)
	w.StringMember("model", o.Model)
	w.Name("previous_response_id")
	if o.Previous == "" {
		w.RawString("null")
	} else {
		w.String(o.Previous)
	}
	w.Name("error")
	if o.Message == "" {
		w.RawString("null")
	} else {
		w.Open('{')
		w.StringMember("code", o.Code)
		w.StringMember("message", o.Message)
		w.Close('}')
	}
	w.RawString(`"incomplete_details":null,"instructions":null,"metadata":{},"output":[],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":null`)
	w.Close('}')
	return w.B
}

// background is a request that is answered later (background: true).
type background struct {
	Key  liveKey
	Hash [32]byte // of the body
	// ID and Model are those of the response.
	ID, Model string
	// Body is the request as the client sent it; Previous what expand gave.
	Body     []byte
	Previous *storedNode
}

// start takes the request on and gives its call and the response as it is now,
// queued. run is called beside it, in the call's context, and gives the answer;
// what it writes to out is what a client that streams it follows (it may write
// nothing). failed says how an error is told: a code of the protocol, and words
// that are safe to show.
//
// A repeated Idempotency-Key gives the response that it began. The error is one
// of live.begin or retrieve, or says that the request does not let its response
// be stored.
func (s *responseStore) start(ctx context.Context, v *live, b background, run func(context.Context, sink) (*ninelives.Response, error), failed func(error) (code, message string)) (*liveCall, []byte, error) {
	if !storing(b.Body) {
		return nil, nil, &refused{
			Trouble: troubleMalformed, Param: "store",
			Text: "A background response has to be stored until it is fetched: leave store out, or background",
		}
	}
	l, joined, err := v.begin(ctx, b.Key, b.Hash, true)
	if err != nil {
		return nil, nil, err
	}
	if joined {
		select {
		case <-l.known: // now it is stored
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		object, err := s.retrieve(ctx, b.Key.client, l.id())
		return l, object, err
	}
	head := backgroundObject{
		ID: b.ID, Model: b.Model, Created: time.Now(), Status: "queued",
		Previous: rawjson.String(rawjson.Get(b.Body, "previous_response_id")),
	}
	queued := head.encode()
	s.put(time.Now(), b.Key.client, storedOf(b.Body, queued, nil), b.Previous)
	l.named(b.ID)
	go func() {
		head.Status = "in_progress"
		s.settle(b.Key.client, b.ID, head.encode(), nil)
		out := l.sink()
		r, err := unbroken(func() (*ninelives.Response, error) { return run(l.context(), out) })
		if err != nil {
			head.Status = "failed"
			head.Code, head.Message = failed(err)
			s.settle(b.Key.client, b.ID, head.encode(), nil)
		} else {
			answer := *r
			answer.ID, answer.Model, answer.Created = b.ID, b.Model, head.Created
			s.settle(b.Key.client, b.ID, openai.EncodeResponsesResponse(&answer), &answer.Message)
		}
		out.end(err)
	}()
	return l, queued, nil
}

// unbroken makes an error of a panic, which nobody else would catch here and
// which would end the calls of all clients, and of an answer that is none.
func unbroken(run func() (*ninelives.Response, error)) (r *ninelives.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("a mistake of the gateway ended the call: %v\n%s", p, debug.Stack())
		}
	}()
	if r, err = run(); r == nil && err == nil {
		err = errors.New("the call ended without an answer")
	}
	return r, err
}
