package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

func TestExitCodes(t *testing.T) {
	fault := func(c ninelives.Class) error { return &ninelives.Fault{Class: c} }
	exhausted := func(classes ...ninelives.Class) error {
		e := &heal.Exhausted{}
		for _, c := range classes {
			e.Fault = &ninelives.Fault{Class: c}
			e.Trail = append(e.Trail, heal.Tried{Class: c, Fault: e.Fault})
		}
		return fmt.Errorf("wrapped: %w", e)
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("what is this"), 1},
		{usagef("wrong"), 2},
		{usagef("ninelives.yaml:1:1: %w", &provider.KeyError{Provider: "x", Variable: "X"}), 3},
		{&ended{7}, 7},
		{context.Canceled, 130},
		{context.DeadlineExceeded, 124},
		{fault(ninelives.ClassAuth), 3},
		{fault(ninelives.ClassBilling), 4},
		{fault(ninelives.ClassOverloaded), 5},
		{fault(ninelives.ClassInvalidOutput), 5},
		{fault(ninelives.ClassRefusal), 6},
		{fault(ninelives.ClassContentFilter), 6},
		{fault(ninelives.ClassTruncated), 7},
		{fault(ninelives.ClassEmpty), 8},
		{fault(ninelives.ClassContextLength), 12},
		{fault(ninelives.ClassCanceled), 130},
		{fault(ninelives.ClassModelNotFound), 2},
		{fault(ninelives.ClassFormat), 2},
		{exhausted(), 5},
		{exhausted(ninelives.ClassAuth), 3},
		{exhausted(ninelives.ClassAuth, ninelives.ClassBilling), 4},
		{exhausted(ninelives.ClassTimeout, ninelives.ClassAuth), 5},
		{exhausted(ninelives.ClassEmpty, ninelives.ClassEmpty), 8},
		{&heal.Exhausted{Deadline: true, Fault: &ninelives.Fault{Class: ninelives.ClassAuth}}, 124},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestExitCodesOfAnswers(t *testing.T) {
	said := ninelives.AssistantText("a")
	declined := ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Refusal{Text: "no"}}}
	for _, c := range []struct {
		resp ninelives.Response
		want int
	}{
		{ninelives.Response{Message: said, Finish: ninelives.FinishStop}, 0},
		{ninelives.Response{Message: said, Finish: ninelives.FinishLength}, 7},
		{ninelives.Response{Message: said, Finish: ninelives.FinishContentFilter}, 6},
		{ninelives.Response{Message: declined, Finish: ninelives.FinishStop}, 6},
		{ninelives.Response{Message: said, Finish: ninelives.FinishRefusal}, 6},
	} {
		if got := answerCode(&c.resp); got != c.want {
			t.Errorf("%s %v: exit code %d, want %d", c.resp.Finish, c.resp.Message, got, c.want)
		}
	}
}
