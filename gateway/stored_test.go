package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

// answerTo answers a request of client a and stores it.
func answerTo(t *testing.T, s *responseStore, id, body string, parts ...ninelives.Part) *ninelives.Response {
	t.Helper()
	x, err := s.expand(t.Context(), "a", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := &ninelives.Response{ID: id, Model: "m", Finish: ninelives.FinishStop, Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}}
	var previous *storedNode
	if x != nil {
		previous = x.Previous
	}
	s.put(time.Now(), "a", storedOf([]byte(body), openai.EncodeResponsesResponse(r), &r.Message), previous)
	return r
}

func sameJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func troubleOf(err error) trouble {
	var r *refused
	if errors.As(err, &r) {
		return r.Trouble
	}
	return ""
}

func TestARequestThatGoesOnIsMadeWhole(t *testing.T) {
	s := newResponseStore()
	answerTo(t, s, "resp_1", `{"model":"m","instructions":"be brief","input":"hi"}`, ninelives.Text{Text: "hello"})
	answerTo(t, s, "resp_2", `{"model":"m","previous_response_id":"resp_1","input":[{"role":"user","content":"weather?"}]}`,
		ninelives.ToolCall{ID: "call_1", Name: "weather", Arguments: "{}"})

	body := `{"model":"other","previous_response_id":"resp_2","instructions":"be long","input":[{"type":"function_call_output","call_id":"call_1","output":"sun"}],"stream":true,"unknown":{"a":[1]}}`
	x, err := s.expand(t.Context(), "a", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, x.Body, `{"model":"other","instructions":"be long","stream":true,"unknown":{"a":[1]},"input":[
		{"type":"message","role":"user","content":"hi"},
		{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[]}]},
		{"role":"user","content":"weather?"},
		{"type":"function_call","status":"completed","call_id":"call_1","name":"weather","arguments":"{}"},
		{"type":"function_call_output","call_id":"call_1","output":"sun"}]}`)

	req, err := x.request()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range req.Messages {
		told = append(told, fmt.Sprintf("%s:%s%d", m.Role, m.Text(), len(m.ToolCalls())))
	}
	if want := []string{"system:be long0", "user:hi0", "assistant:hello0", "user:weather?0", "assistant:1", "tool:0"}; !reflect.DeepEqual(told, want) {
		t.Errorf("the messages are %q, want %q", told, want)
	}
	if result := req.Messages[5].Parts[0].(ninelives.ToolResult); result.Name != "weather" || result.Text() != "sun" {
		t.Errorf("the result of the tool is %+v", result)
	}
	if req.Model != "other" {
		t.Errorf("the model is %q", req.Model)
	}
}

func TestReasoningIsShownAgainAsItsModelSignedIt(t *testing.T) {
	s := newResponseStore()
	signed := ninelives.Reasoning{Text: "hm", Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: "thinking", Signature: "sig"}}
	answerTo(t, s, "resp_1", `{"input":"hi"}`, signed, ninelives.Text{Text: "hello"})
	x, err := s.expand(t.Context(), "a", []byte(`{"previous_response_id":"resp_1","input":"on"}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := x.request()
	if err != nil {
		t.Fatal(err)
	}
	if got := req.Messages[1].Parts[0]; !reflect.DeepEqual(got, ninelives.Part(signed)) {
		t.Errorf("the reasoning is %+v, want %+v", got, signed)
	}
}

func TestAnAnswerKnownByItsBytesAloneGoesOnAsWell(t *testing.T) {
	s := newResponseStore()
	s.put(time.Now(), "a", storedOf([]byte(`{"input":"hi"}`), []byte(`{"id":"resp_1","status":"completed","output":[
		{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"blob"},
		{"type":"web_search_call","id":"ws_1","status":"completed"},
		{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hello"}]}]}`), nil), nil)
	x, err := s.expand(t.Context(), "a", []byte(`{"previous_response_id":"resp_1","input":"more"}`))
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, x.Body, `{"input":[
		{"type":"message","role":"user","content":"hi"},
		{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"blob"},
		{"type":"web_search_call","id":"ws_1","status":"completed"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]},
		{"type":"message","role":"user","content":"more"}]}`)
	req, err := x.request()
	if err != nil || len(req.Messages) != 3 || req.Messages[1].Text() != "hello" || req.Messages[2].Text() != "more" {
		t.Errorf("the messages are %+v, %v", req.Messages, err)
	}
}

func TestWhatCannotBeGoneOnFrom(t *testing.T) {
	s := newResponseStore()
	answerTo(t, s, "resp_1", `{"input":"hi"}`, ninelives.Text{Text: "hello"})
	s.put(time.Now(), "a", storedOf([]byte(`{"input":"hi"}`), backgroundObject{ID: "resp_2", Status: "in_progress"}.encode(), nil), nil)
	for _, c := range []struct{ client, id string }{{"b", "resp_1"}, {"a", "resp_2"}, {"a", "resp_3"}, {"", "resp_1"}} {
		_, err := s.expand(t.Context(), c.client, []byte(`{"previous_response_id":"`+c.id+`"}`))
		var r *refused
		if !errors.As(err, &r) || r.Trouble != troubleMalformed || r.Param != "previous_response_id" {
			t.Errorf("%v: %v", c, err)
		}
	}
	if x, err := s.expand(t.Context(), "a", []byte(`{"input":"hi","previous_response_id":null}`)); x != nil || err != nil {
		t.Errorf("a request that goes on from nothing: %v, %v", x, err)
	}
}

func TestStoredResponsesAreTheirClientsOwn(t *testing.T) {
	s := newResponseStore()
	answerTo(t, s, "resp_1", `{"input":"hi"}`, ninelives.Text{Text: "hello"})
	v := newLive(nil)
	for _, client := range []string{"b", ""} {
		_, got := s.retrieve(t.Context(), client, "resp_1")
		_, items := s.inputItems(t.Context(), client, "resp_1", nil)
		_, removed := s.remove(t.Context(), client, "resp_1")
		_, canceled := s.cancel(t.Context(), v, client, "resp_1")
		for _, err := range []error{got, items, removed, canceled} {
			if troubleOf(err) != troubleNotFound {
				t.Errorf("client %q: %v", client, err)
			}
		}
	}
	if object, err := s.retrieve(t.Context(), "a", "resp_1"); err != nil || !strings.Contains(string(object), "hello") {
		t.Errorf("its own client: %s, %v", object, err)
	}
}

func TestADeletedResponseIsGoneAndItsFollowersAreWhole(t *testing.T) {
	s := newResponseStore()
	answerTo(t, s, "resp_1", `{"input":"hi"}`, ninelives.Text{Text: "hello"})
	answerTo(t, s, "resp_2", `{"previous_response_id":"resp_1","input":"and"}`, ninelives.Text{Text: "so"})
	var erased []string
	s.erase = func(_ context.Context, client, id string) error { erased = append(erased, client+" "+id); return nil }
	got, err := s.remove(t.Context(), "a", "resp_1")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, got, `{"id":"resp_1","object":"response","deleted":true}`)
	if _, err := s.retrieve(t.Context(), "a", "resp_1"); troubleOf(err) != troubleNotFound || !reflect.DeepEqual(erased, []string{"a resp_1"}) {
		t.Errorf("it is still there: %v, erased %v", err, erased)
	}
	x, err := s.expand(t.Context(), "a", []byte(`{"previous_response_id":"resp_2","input":"on"}`))
	if err != nil || strings.Count(string(x.Body), "hello") != 1 {
		t.Errorf("who goes on from a follower gets %v", err)
	}
	s.erase = func(context.Context, string, string) error { return errors.New("disk full") }
	if _, err := s.remove(t.Context(), "a", "resp_2"); err == nil {
		t.Error("what could not be erased is told as deleted")
	}
	if _, err := s.retrieve(t.Context(), "a", "resp_2"); err != nil {
		t.Errorf("what could not be erased is gone from memory: %v", err)
	}
}

func TestTheItemsOfARequest(t *testing.T) {
	s := newResponseStore()
	answerTo(t, s, "resp_1", `{"instructions":"no item","input":"hi"}`, ninelives.Text{Text: "hello"})
	answerTo(t, s, "resp_2", `{"previous_response_id":"resp_1","input":[{"id":"msg_u","role":"user","content":[{"type":"input_text","text":"and"}]}]}`, ninelives.Text{Text: "not an input"})
	get := func(query string) []byte {
		q, _ := url.ParseQuery(query)
		got, err := s.inputItems(t.Context(), "a", "resp_2", q)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const (
		hi  = `{"id":"item_resp_1_0","type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`
		and = `{"id":"msg_u","type":"message","role":"user","content":[{"type":"input_text","text":"and"}]}`
	)
	var list struct{ Data []json.RawMessage }
	if err := json.Unmarshal(get("order=asc"), &list); err != nil || len(list.Data) != 3 {
		t.Fatalf("%d items, %v", len(list.Data), err)
	}
	hello := string(list.Data[1])
	var said struct{ ID string }
	_ = json.Unmarshal(list.Data[1], &said)
	if !strings.Contains(hello, `"hello"`) {
		t.Errorf("the earlier answer is %s", hello)
	}
	sameJSON(t, get("order=asc"), `{"object":"list","data":[`+hi+`,`+hello+`,`+and+`],"first_id":"item_resp_1_0","last_id":"msg_u","has_more":false}`)
	sameJSON(t, get("limit=2"), `{"object":"list","data":[`+and+`,`+hello+`],"first_id":"msg_u","last_id":"`+said.ID+`","has_more":true}`)
	sameJSON(t, get("limit=2&after="+said.ID), `{"object":"list","data":[`+hi+`],"first_id":"item_resp_1_0","last_id":"item_resp_1_0","has_more":false}`)
	sameJSON(t, get("after=item_resp_1_0"), `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}`)
	for _, bad := range []string{"limit=0", "limit=101", "limit=x", "order=up", "after=nobody"} {
		q, _ := url.ParseQuery(bad)
		if _, err := s.inputItems(t.Context(), "a", "resp_2", q); troubleOf(err) != troubleMalformed {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestARestartRecallsAConversation(t *testing.T) {
	before := newResponseStore()
	answerTo(t, before, "resp_1", `{"input":"hi"}`, ninelives.Text{Text: "hello"})
	answerTo(t, before, "resp_2", `{"previous_response_id":"resp_1","input":"and"}`, ninelives.Text{Text: "so"})
	const body = `{"previous_response_id":"resp_2","input":"on"}`
	want, err := before.expand(t.Context(), "a", []byte(body))
	if err != nil {
		t.Fatal(err)
	}

	after, asks := newResponseStore(), 0
	after.recall = func(ctx context.Context, client, id string) (storedResponse, bool) {
		asks++
		n := before.find(ctx, client, id)
		if n == nil {
			return storedResponse{}, false
		}
		return n.storedResponse, true
	}
	for range 2 {
		got, err := after.expand(t.Context(), "a", []byte(body))
		if err != nil || string(got.Body) != string(want.Body) {
			t.Fatalf("%v: got %s, want %s", err, got.Body, want.Body)
		}
	}
	if asks != 2 {
		t.Errorf("the journal was asked %d times for two responses", asks)
	}
	if _, err := after.expand(t.Context(), "b", []byte(body)); troubleOf(err) != troubleMalformed {
		t.Errorf("another client: %v", err)
	}
	if _, err := before.remove(t.Context(), "a", "resp_1"); err != nil {
		t.Fatal(err)
	}
	again := newResponseStore()
	again.recall = after.recall
	if _, err := again.expand(t.Context(), "a", []byte(body)); troubleOf(err) != troubleMalformed {
		t.Errorf("a conversation that has lost its beginning: %v", err)
	}
}

func TestStoredResponsesAreBounded(t *testing.T) {
	s := newResponseStore()
	s.limit = 100 << 10
	put := func(id, previous string) error {
		body := `{"input":"` + strings.Repeat("x", 8<<10) + `","previous_response_id":"` + previous + `"}`
		x, err := s.expand(t.Context(), "a", []byte(body))
		if err != nil {
			return err
		}
		var p *storedNode
		if x != nil {
			p = x.Previous
		}
		s.put(time.Now(), "a", storedOf([]byte(body), backgroundObject{ID: id, Status: "completed"}.encode(), nil), p)
		if s.bytes > s.limit {
			t.Fatalf("%d bytes are kept", s.bytes)
		}
		return nil
	}
	for i := range 50 { // many short conversations
		if err := put(fmt.Sprint("a", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if s.find(t.Context(), "a", "a0") != nil || s.find(t.Context(), "a", "a49") == nil {
		t.Error("the oldest is not what left")
	}
	last := ""
	for i := range 50 { // a long one: it holds on to its beginning, and in the end it is too long
		id := fmt.Sprint("b", i)
		if put(id, last) != nil {
			break
		}
		last = id
	}
	if s.find(t.Context(), "a", "b49") != nil || s.find(t.Context(), "a", "a49") != nil {
		t.Error("a conversation beyond the bound is kept, or a shorter one that was used longer ago")
	}
	for s.names.shed() {
	}
	if s.bytes != 0 {
		t.Errorf("%d bytes are counted of nothing", s.bytes)
	}

	now := time.Unix(0, 0)
	for i := range storedEntries + 1 {
		s.put(now, "a", storedResponse{ID: fmt.Sprint(i)}, nil)
	}
	if n := len(s.names.index); n > storedEntries {
		t.Errorf("%d responses are kept", n)
	}
	s.put(now.Add(storedFor), "a", storedResponse{ID: "new"}, nil)
	if n := len(s.names.index); n != 1 {
		t.Errorf("%d responses are kept for more than 30 days", n-1)
	}
}

func TestStoringIsTheRuleUnlessToldOtherwise(t *testing.T) {
	for body, want := range map[string]bool{`{}`: true, `{"store":true}`: true, `{"store":null}`: true, `{"store":false}`: false} {
		if storing([]byte(body)) != want {
			t.Errorf("%s is stored: %t", body, !want)
		}
	}
}

func failedSo(error) (string, string) { return "server_error", "it did not work" }

func status(t *testing.T, s *responseStore, id string) string {
	t.Helper()
	object, err := s.retrieve(t.Context(), "a", id)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Status string
		Error  *struct{ Code, Message string }
	}
	if err := json.Unmarshal(object, &o); err != nil {
		t.Fatal(err)
	}
	if (o.Error != nil) != (o.Status == "failed") {
		t.Errorf("%s with the error %v", o.Status, o.Error)
	}
	return o.Status
}

func TestABackgroundResponseIsPolledToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			err  error
			want string
		}{{nil, "completed"}, {errors.New("sk-secret"), "failed"}} {
			s, v := newResponseStore(), newLive(graceOf(time.Second))
			ctx, leave := context.WithCancel(t.Context())
			finish := make(chan struct{})
			b := background{Key: liveKey{client: "a"}, ID: "resp_1", Model: "m", Body: []byte(`{"input":"hi","background":true}`)}
			l, object, err := s.start(ctx, v, b, func(ctx context.Context, _ sink) (*ninelives.Response, error) {
				<-finish
				if c.err != nil {
					return nil, c.err
				}
				return &ninelives.Response{Message: ninelives.AssistantText("hello"), Finish: ninelives.FinishStop}, ctx.Err()
			}, failedSo)
			if err != nil || !strings.Contains(string(object), `"queued"`) {
				t.Fatalf("%s, %v", object, err)
			}
			leave()
			time.Sleep(time.Hour)
			if got := status(t, s, "resp_1"); got != "in_progress" {
				t.Errorf("under way it is %s", got)
			}
			close(finish)
			synctest.Wait()
			if got := status(t, s, "resp_1"); got != c.want {
				t.Errorf("at its end it is %s, want %s", got, c.want)
			}
			if object, _ := s.retrieve(t.Context(), "a", "resp_1"); strings.Contains(string(object), "secret") {
				t.Error("it tells what is not safe to tell")
			}
			if l.context().Err() == nil {
				t.Error("its call goes on")
			}
			if _, err := s.cancel(t.Context(), v, "a", "resp_1"); troubleOf(err) != troubleMalformed {
				t.Errorf("cancelling an ended one: %v", err)
			}
		}
	})
}

func TestABackgroundResponseIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := newResponseStore(), newLive(graceOf(time.Second))
		var cause error
		b := background{Key: liveKey{"a", "key"}, ID: "resp_1", Model: "m", Body: []byte(`{"input":"hi","background":true}`)}
		run := func(ctx context.Context, _ sink) (*ninelives.Response, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, cause
		}
		if _, _, err := s.start(t.Context(), v, b, run, failedSo); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, object, err := s.start(t.Context(), v, b, run, failedSo); err != nil || !strings.Contains(string(object), `"in_progress"`) {
			t.Errorf("its key again: %s, %v", object, err)
		}
		object, err := s.cancel(t.Context(), v, "a", "resp_1")
		if err != nil || !strings.Contains(string(object), `"cancelled"`) {
			t.Errorf("%s, %v", object, err)
		}
		synctest.Wait()
		if cause != errResponseCancelled || status(t, s, "resp_1") != "cancelled" {
			t.Errorf("it ended by %v and is %s", cause, status(t, s, "resp_1"))
		}
		if _, err := s.cancel(t.Context(), v, "a", "resp_1"); troubleOf(err) != troubleMalformed {
			t.Errorf("cancelling it again: %v", err)
		}
	})
}

func TestABackgroundResponseThatBreaksEndsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, run := range map[string]func(context.Context, sink) (*ninelives.Response, error){
			"panic":     func(context.Context, sink) (*ninelives.Response, error) { panic("oh") },
			"no answer": func(context.Context, sink) (*ninelives.Response, error) { return nil, nil },
		} {
			s, v := newResponseStore(), newLive(graceOf(time.Second))
			b := background{Key: liveKey{client: "a"}, ID: "resp_1", Body: []byte(`{}`)}
			if _, _, err := s.start(t.Context(), v, b, run, failedSo); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := status(t, s, "resp_1"); got != "failed" {
				t.Errorf("after a %s it is %s", name, got)
			}
		}
	})
}

func TestABackgroundResponseHasToBeStored(t *testing.T) {
	s, v := newResponseStore(), newLive(nil)
	b := background{Key: liveKey{"a", "key"}, ID: "resp_1", Body: []byte(`{"background":true,"store":false}`)}
	if _, _, err := s.start(t.Context(), v, b, nil, nil); troubleOf(err) != troubleMalformed || len(v.byKey) != 0 {
		t.Errorf("it was taken on: %v", err)
	}
}

func TestARepeatedBackgroundRequestWaitsUntilTheFirstIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := newResponseStore(), newLive(graceOf(time.Second))
		key := liveKey{"a", "key"}
		first, _, _ := v.begin(t.Context(), key, liveAsked, true)
		var object []byte
		var err error
		go func() {
			_, object, err = s.start(t.Context(), v, background{Key: key, Hash: liveAsked, Body: []byte(`{}`)}, nil, nil)
		}()
		synctest.Wait()
		if object != nil || err != nil {
			t.Fatalf("it was answered before: %s, %v", object, err)
		}
		s.put(time.Now(), "a", storedOf([]byte(`{}`), backgroundObject{ID: "resp_1", Status: "queued"}.encode(), nil), nil)
		first.named("resp_1")
		synctest.Wait()
		if !strings.Contains(string(object), `"resp_1"`) || err != nil {
			t.Errorf("%s, %v", object, err)
		}
		first.end(nil)
	})
}

func TestAStreamedResponseIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := newResponseStore(), newLive(graceOf(time.Minute))
		l := beginLive(t, v, "key")
		l.named("resp_1") // as its client saw it
		if object, err := s.cancel(t.Context(), v, "a", "resp_1"); err != nil || !strings.Contains(string(object), `"cancelled"`) {
			t.Errorf("%s, %v", object, err)
		}
		if context.Cause(l.context()) != errResponseCancelled {
			t.Errorf("its call ends by %v", context.Cause(l.context()))
		}
		l.end(errResponseCancelled)
	})
}
