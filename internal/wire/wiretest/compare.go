package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// classes maps the recordings' labels to the classes that we may give them.
// Where a label is wider than a class, every class is named that a reader of
// the provider's words could defend.
var classes = map[string][]ninelives.Class{
	"auth":                {ninelives.ClassAuth},
	"permission":          {ninelives.ClassAuth, ninelives.ClassContentFilter},
	"rate_limit":          {ninelives.ClassRateLimit, ninelives.ClassContextLength, ninelives.ClassOverloaded},
	"quota_exhausted":     {ninelives.ClassBilling},
	"overloaded":          {ninelives.ClassOverloaded, ninelives.ClassRateLimit},
	"context_overflow":    {ninelives.ClassContextLength},
	"model_not_found":     {ninelives.ClassModelNotFound},
	"unsupported_feature": {ninelives.ClassFormat, ninelives.ClassModelNotFound},
	"invalid_request":     {ninelives.ClassFormat},
	"tool_use_failed":     {ninelives.ClassFormat, ninelives.ClassUnknown, ninelives.ClassStreamBroken},
	"upstream_error":      {ninelives.ClassOverloaded, ninelives.ClassUnknown, ninelives.ClassFormat},
	"server_error":        {ninelives.ClassUnknown, ninelives.ClassFormat},
	"protocol_violation":  {ninelives.ClassStreamBroken},
}

// Compare checks what a decoder made of an exchange: resp and err are what
// DecodeResponse, the classifier, or Decoder.Response gave. Where an error is
// expected, the partial answer in the fault is compared.
//
// An error that follows the end of the answer leaves the answer standing: then
// a warning must tell of it. A stream that ended without a terminal marker may
// be a fault, or an answer if [DONE] vouched for it.
func Compare(t testing.TB, ex Exchange, resp *ninelives.Response, err error) {
	t.Helper()
	want := ex.Expect
	var fault *ninelives.Fault
	if err != nil && !errors.As(err, &fault) {
		t.Fatalf("the error is no Fault: %v", err)
	}
	wantError := want.Error
	if wantError == nil {
		wantError = want.StreamError
	}
	switch {
	case wantError != nil && fault == nil && want.StreamError != nil && want.FinishRaw != nil && resp != nil:
		if wantError.Message != nil && !slices.ContainsFunc(resp.Warnings, func(w string) bool { return strings.Contains(w, *wantError.Message) }) {
			t.Errorf("no warning tells of the error after the end: %q", resp.Warnings)
		}
	case wantError != nil && fault == nil:
		t.Fatalf("decoded without an error, want one of kind %s", wantError.Kind)
	case wantError != nil:
		compareError(t, *wantError, fault)
	case want.Complete && fault != nil:
		t.Fatalf("a complete answer gave an error: %v", fault)
	case !want.Complete && fault != nil && fault.Class != ninelives.ClassStreamBroken && fault.Class != ninelives.ClassEmpty:
		t.Errorf("the stream broke off, class is %s: %v", fault.Class, fault)
	}
	if fault != nil {
		resp = fault.Partial
	}
	if resp == nil {
		if want.Text != "" || want.Reasoning != "" || len(want.ToolCalls) > 0 {
			t.Errorf("the partial answer is lost: want text %q, reasoning %q, %d calls", want.Text, want.Reasoning, len(want.ToolCalls))
		}
		return
	}
	compareContent(t, want, resp)
	compareUsage(t, want.Usage, resp.Usage)
}

func compareError(t testing.TB, want Error, got *ninelives.Fault) {
	t.Helper()
	allowed, ok := classes[want.Kind]
	if !ok {
		t.Errorf("the recording's kind %q has no class", want.Kind)
	} else if !slices.Contains(allowed, got.Class) {
		t.Errorf("class %s, want one of %s (kind %s): %v", got.Class, allowed, want.Kind, got)
	}
	if want.Status != nil && got.Status != *want.Status {
		t.Errorf("status %d, want %d", got.Status, *want.Status)
	}
	if got.Message == "" && want.Message != nil && *want.Message != "" {
		t.Errorf("no message, want %q", *want.Message)
	}
}

func compareContent(t testing.TB, want Expect, got *ninelives.Response) {
	t.Helper()
	if g := got.Message.Text(); g != want.Text {
		t.Errorf("text\n got %q\nwant %q", g, want.Text)
	}
	if g := got.Message.Reasoning(); g != want.Reasoning {
		t.Errorf("reasoning\n got %q\nwant %q", g, want.Reasoning)
	}
	refusal := ""
	if want.Refusal != nil {
		refusal = *want.Refusal
	}
	if g := got.Message.Refusal(); g != refusal {
		t.Errorf("refusal\n got %q\nwant %q", g, refusal)
	}
	finish := ""
	if want.FinishRaw != nil {
		finish = *want.FinishRaw
	}
	if got.FinishRaw != finish {
		t.Errorf("finish %q, want %q", got.FinishRaw, finish)
	}
	calls := got.Message.ToolCalls()
	if len(calls) != len(want.ToolCalls) {
		t.Errorf("%d tool calls, want %d: %+v", len(calls), len(want.ToolCalls), calls)
		return
	}
	for i, w := range want.ToolCalls {
		g := calls[i]
		if g.Name != w.Name {
			t.Errorf("call %d: name %q, want %q", i, g.Name, w.Name)
		}
		if w.ID != nil && *w.ID != "" && g.ID != *w.ID {
			t.Errorf("call %d: id %q, want %q", i, g.ID, *w.ID)
		}
		compareArguments(t, i, w, g.Arguments, got.Finish == ninelives.FinishLength)
	}
}

// compareArguments lets "" and null be {} (but never in an answer that was cut
// there), and JSON be spelt otherwise; what does not parse must be as it came.
func compareArguments(t testing.TB, i int, want Call, got string, cut bool) {
	t.Helper()
	switch {
	case got == want.Raw && !(want.Valid && string(want.Arguments) == "null"):
		return
	case want.Raw == "" && got == "{}" && !cut:
		return
	case want.Valid && string(want.Arguments) == "null" && got == "{}":
		return
	case want.Valid && sameJSON(want.Arguments, []byte(got)):
		return
	}
	t.Errorf("call %d: arguments\n got %s\nwant %s", i, got, want.Raw)
}

func sameJSON(a, b []byte) bool {
	x, ok := plain(a)
	y, ok2 := plain(b)
	return ok && ok2 && reflect.DeepEqual(x, y)
}

func plain(b []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil
}

func compareUsage(t testing.TB, want *Usage, got ninelives.Usage) {
	t.Helper()
	if want == nil {
		want = &Usage{}
	}
	for _, c := range []struct {
		name  string
		want  *int
		got   int
		field ninelives.UsageField
	}{
		{"input", want.Input, got.Input, ninelives.UsageInput},
		{"output", want.Output, got.Output, ninelives.UsageOutput},
		{"reasoning", want.Reasoning, got.Reasoning, ninelives.UsageReasoning},
		{"cached", want.Cached, got.Cached, ninelives.UsageCached},
		{"cache_write", want.CacheWrite, got.CacheWrite, ninelives.UsageCacheWrite},
	} {
		switch {
		case c.want == nil && c.name == "cache_write":
			// Not every recording looked for it.
		case c.want == nil && got.Has(c.field):
			t.Errorf("usage: %s is %d, but none was reported", c.name, c.got)
		case c.want != nil && !got.Has(c.field):
			t.Errorf("usage: %s is missing, want %d", c.name, *c.want)
		case c.want != nil && c.got != *c.want:
			t.Errorf("usage: %s is %d, want %d", c.name, c.got, *c.want)
		}
	}
}

// CompareParts checks that text and reasoning are kept apart as the provider
// sent them, block by block; empty blocks do not count. It is for protocols
// whose answers have blocks.
func CompareParts(t testing.TB, ex Exchange, resp *ninelives.Response) {
	t.Helper()
	if resp == nil {
		return
	}
	var text, reasoning []string
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case ninelives.Text:
			text = append(text, p.Text)
		case ninelives.Reasoning:
			reasoning = append(reasoning, p.Text)
		}
	}
	compareList(t, "text parts", text, ex.Expect.TextParts)
	compareList(t, "reasoning parts", reasoning, ex.Expect.ReasoningParts)
}

func compareList(t testing.TB, what string, got, want []string) {
	t.Helper()
	empty := func(s string) bool { return s == "" }
	got = slices.DeleteFunc(slices.Clone(got), empty)
	want = slices.DeleteFunc(slices.Clone(want), empty)
	if !slices.Equal(got, want) {
		t.Errorf("%s\n got %q\nwant %q", what, got, want)
	}
}
