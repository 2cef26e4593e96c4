package heal

import (
	"errors"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func lastText(r *ninelives.Request) string { return r.Messages[len(r.Messages)-1].Text() }

func TestEmptyAnswerIsRetriedNudgedAndAskedWithoutTools(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		nothing := step{end(empty())}
		a := model("a", nothing, nothing, nothing, says("hello"))
		req := ninelives.Prompt("hi")
		req.Tools = []ninelives.Tool{{Name: "f"}}
		s := watch(t.Context(), healed(a), req)
		equal(t, "text", s.text, "hello")
		equal(t, "asked", a.since(t0), []time.Duration{0, 0, 0, 0})
		equal(t, "plain retry", len(a.requests[1].Messages), 1)
		equal(t, "nudge", lastText(a.requests[2]), NudgePrompt)
		equal(t, "nudge may use tools", a.requests[2].ToolChoice.Mode, ninelives.ToolChoiceMode(""))
		equal(t, "finalisation", lastText(a.requests[3]), NudgePrompt)
		equal(t, "finalisation has no tools to call", a.requests[3].ToolChoice.Mode, ninelives.ToolChoiceNone)
		equal(t, "the caller's messages", len(req.Messages), 1)
	})
}

func TestEmptyAnswersMoveOnWhenTheirStepsAreSpent(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", step{end(empty())}), model("b", says("hello"))
		s := ask(t, healed(a, Fallback(b)))
		equal(t, "a asked", len(a.asked), 4)
		equal(t, "b gets the plain request", len(b.requests[0].Messages), 1)
		equal(t, "text", s.text, "hello")
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{end(empty())})
		s := ask(t, healed(a))
		var e *Exhausted
		equal(t, "exhausted", errors.As(s.err, &e) && e.Fault.Class == ninelives.ClassEmpty, true)
		equal(t, "asked", len(a.asked), 4)
	})
}

func TestEmptyAnswersDoNotSpendTheFaultBudget(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		nothing := step{end(empty())}
		a := model("a", nothing, fails(ninelives.ClassUnknown), nothing, fails(ninelives.ClassUnknown), fails(ninelives.ClassUnknown), says("hello"))
		s := ask(t, healed(a))
		equal(t, "text", s.text, "hello")
		equal(t, "requests", len(a.asked), 6)
		equal(t, "a failed nudge is nudged again", lastText(a.requests[5]), NudgePrompt)
	})
}

func TestNoCallMakesMoreThanTenRequests(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		nothing := step{end(empty())}
		half := step{text("x"), end(cut("xxxx "))}
		a := model("a", nothing, nothing, nothing, half, fails(ninelives.ClassUnknown), half, fails(ninelives.ClassUnknown), half, fails(ninelives.ClassUnknown), half)
		s := ask(t, healed(a))
		equal(t, "requests", len(a.asked), 10)
		equal(t, "flagged", s.resp.Finish, ninelives.FinishLength)
	})
}

func TestReasoningOfAnEmptyAnswerIsVoided(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		thinking := &ninelives.Response{Message: message(ninelives.Reasoning{Text: "hm"}), Finish: ninelives.FinishStop}
		a := model("a", step{thought("hm"), end(thinking)}, says("hello"))
		s := ask(t, healed(a))
		equal(t, "text", s.text, "hello")
		var kinds []string
		for _, ev := range s.events {
			switch e := ev.(type) {
			case ninelives.ReasoningDelta:
				kinds = append(kinds, "thought")
			case ninelives.Discard:
				equal(t, "voided", e.Attempt, 1)
				kinds = append(kinds, "discard")
			case ninelives.TextDelta:
				kinds = append(kinds, "text")
			}
		}
		equal(t, "order", kinds, []string{"thought", "discard", "text"})
	})
}

func TestCutAnswerIsContinuedIntoOne(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		first := cut("Cats land on their feet because ")
		first.Usage = used(10, 6, 0)
		first.ID = "one"
		second := cut("they twist ")
		second.Usage = used(20, 3, 0)
		third := answer("in the air.")
		third.Usage = used(30, 4, 0)
		third.ID = "three"
		a := model("a",
			step{text("Cats land on their feet because "), end(first)},
			step{text("they "), text("twist "), end(second)},
			step{text("in the air."), end(third)})
		s := ask(t, healed(a))
		const whole = "Cats land on their feet because they twist in the air."
		equal(t, "answer", s.resp.Text(), whole)
		equal(t, "one part", len(s.resp.Message.Parts), 1)
		equal(t, "shown", s.text, whole)
		equal(t, "finish", s.resp.Finish, ninelives.FinishStop)
		equal(t, "continued", s.resp.Continued, 2)
		equal(t, "attempts", s.resp.Attempts, 3)
		equal(t, "usage", []int{s.resp.Usage.Input, s.resp.Usage.Output}, []int{60, 13})
		equal(t, "asked", a.since(t0), []time.Duration{0, 0, 0})

		messages := a.requests[1].Messages
		equal(t, "messages", len(messages), 3)
		equal(t, "its own words", messages[1].Text(), "Cats land on their feet because ")
		if p := messages[2].Text(); !strings.HasPrefix(p, ContinuePrompt) || !strings.Contains(p, "Cats land on their feet because") {
			t.Errorf("the prompt lacks its words or the quoted tail: %q", p)
		}
		for _, ev := range s.events {
			if _, ok := ev.(ninelives.Discard); ok {
				t.Error("what is continued was voided")
			}
		}
	})
}

func TestPrefillContinuesWithoutAnInstruction(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one two "), end(cut("one two "))}, says("three"))
		a.candidate.Prefill = true
		s := ask(t, healed(a))
		equal(t, "answer", s.resp.Text(), "one two three")
		messages := a.requests[1].Messages
		equal(t, "messages", len(messages), 2)
		equal(t, "role", messages[1].Role, ninelives.RoleAssistant)
		equal(t, "no trailing blank", messages[1].Text(), "one two")
	})
}

func TestContinuationIsOfferedThreeTimesAndThenFlagged(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var steps []step
		for _, s := range []string{"a1 ", "b2 ", "c3 ", "d4 ", "e5 "} {
			steps = append(steps, step{text(s), end(cut(s))})
		}
		a := model("a", steps...)
		s := ask(t, healed(a))
		equal(t, "asked", len(a.asked), 4)
		equal(t, "answer", s.resp.Text(), "a1 b2 c3 d4 ")
		equal(t, "shown", s.text, "a1 b2 c3 d4 ")
		equal(t, "flag", s.resp.Finish, ninelives.FinishLength)
	})
}

func TestAnswerIsNotContinuedWhereTheCallerForbidsIt(t *testing.T) {
	half := step{text("half"), end(cut("half"))}
	for name, req := range map[string]*ninelives.Request{
		"a limit":         {Messages: ninelives.Prompt("x").Messages, MaxTokens: 10},
		"several choices": {Messages: ninelives.Prompt("x").Messages, N: 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a := model("a", half)
				s := watch(t.Context(), healed(a, Fallback(model("b", says("hello")))), req)
				equal(t, "asked", len(a.asked), 1)
				equal(t, "text", s.resp.Text(), "half")
				equal(t, "flag", s.resp.Finish, ninelives.FinishLength)
			})
		})
	}
	t.Run("what cannot be gone on with is given as far as it goes", func(t *testing.T) {
		for name, resp := range map[string]*ninelives.Response{
			"further choices":   {Message: message(ninelives.Text{Text: "half"}), Choices: []ninelives.Choice{{Message: ninelives.AssistantText("other")}}},
			"a provider's tool": {Message: message(ninelives.Opaque{Kind: "search"}, ninelives.Text{Text: "half"})},
		} {
			bubble(t, func(t *testing.T, t0 time.Time) {
				resp.Finish = ninelives.FinishLength
				a := model("a", step{text("half"), end(resp)})
				s := ask(t, healed(a, Fallback(model("b", says("hello")))))
				if s.err != nil {
					t.Fatal(name, s.err)
				}
				equal(t, name+": asked", len(a.asked), 1)
				equal(t, name+": text", s.resp.Text(), "half")
				equal(t, name+": flag", s.resp.Finish, ninelives.FinishLength)
			})
		}
	})
	t.Run("a form", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			a := model("a", half)
			req := ninelives.Prompt("x")
			req.Output = &ninelives.Output{}
			s := watch(t.Context(), healed(a), req)
			var f *ninelives.Fault
			equal(t, "typed failure", errors.As(s.err, &f) && f.Class == ninelives.ClassTruncated && f.Partial != nil, true)
			equal(t, "asked", len(a.asked), 1)
		})
	})
	t.Run("a cut call", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			resp := cut("I will write the file.")
			resp.Message.Parts = append(resp.Message.Parts, ninelives.ToolCall{ID: "1", Name: "write", Arguments: `{"text":"once upon`})
			a := model("a", step{text("I will write the file."), end(resp)})
			s := ask(t, healed(a))
			var f *ninelives.Fault
			equal(t, "the call is never handed out", s.resp == nil && errors.As(s.err, &f) && f.Class == ninelives.ClassTruncated, true)
			equal(t, "asked", len(a.asked), 1)
		})
	})
	t.Run("a spent budget of thinking", func(t *testing.T) {
		bubble(t, func(t *testing.T, t0 time.Time) {
			resp := &ninelives.Response{Message: message(ninelives.Reasoning{Text: "hm"}), Finish: ninelives.FinishLength}
			a := model("a", step{thought("hm"), end(resp)})
			s := ask(t, healed(a))
			if s.err == nil || !strings.Contains(s.err.Error(), "raise MaxTokens or lower the reasoning effort") {
				t.Errorf("got %v", s.err)
			}
			equal(t, "not nudged", len(a.asked), 1)
		})
	})
}

func TestFailedContinuationLeavesTheCutAnswerFlagged(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one "), end(cut("one "))}, step{text("tw"), {err: fault(ninelives.ClassStreamBroken)}})
		s := ask(t, healed(a))
		if s.err != nil {
			t.Fatal(s.err)
		}
		equal(t, "answer", s.resp.Text(), "one ")
		equal(t, "shown", s.text, "one ")
		equal(t, "flag", s.resp.Finish, ninelives.FinishLength)
		equal(t, "asked", len(a.asked), 5) // the answer and four broken continuations
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one"), end(cut("one"))}, step{end(empty())})
		s := ask(t, healed(a))
		equal(t, "a continuation with nothing to add ends it", s.resp.Text(), "one")
		equal(t, "asked", len(a.asked), 2)
	})
}

func TestContinuationMovesToTheFallback(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one "), end(cut("one "))}, fails(ninelives.ClassAuth))
		b := model("b", says("two"))
		s := ask(t, healed(a, Fallback(b)))
		equal(t, "answer", s.resp.Text(), "one two")
		equal(t, "shown", s.text, "one two")
		equal(t, "b continues", len(b.requests[0].Messages), 3)
	})
}

func TestCallAfterACutTextIsPartOfTheContinuation(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		second := &ninelives.Response{Finish: ninelives.FinishToolCalls, Message: message(ninelives.Text{Text: "file."},
			ninelives.ToolCall{ID: "1", Name: "write", Arguments: `{}`})}
		a := model("a", step{text("I write the "), end(cut("I write the "))},
			step{text("file."), {ev: ninelives.ToolCallDelta{Part: 1, ID: "1", Name: "write", Arguments: `{}`}}, end(second)})
		s := ask(t, healed(a))
		equal(t, "text", s.resp.Text(), "I write the file.")
		equal(t, "parts", len(s.resp.Message.Parts), 2)
		equal(t, "calls", len(s.resp.Message.ToolCalls()), 1)
		for _, ev := range s.events {
			if d, ok := ev.(ninelives.ToolCallDelta); ok {
				equal(t, "part of the call", d.Part, 1)
			}
		}
	})
}

func TestRefusalGoesToItsRouteAndOnlyThere(t *testing.T) {
	refused := step{declines("no"), end(&ninelives.Response{Finish: ninelives.FinishRefusal, Message: message(ninelives.Refusal{Text: "no"})})}
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b, r := model("a", refused), model("b", says("other")), model("r", says("hello"))
		s := ask(t, healed(a, Fallback(b), RefusalRoute(r)))
		equal(t, "text", s.text, "hello")
		equal(t, "asked", []int{len(a.asked), len(b.asked), len(r.asked)}, []int{1, 0, 1})
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b, r := model("a", fails(ninelives.ClassAuth)), model("b", says("other")), model("r", says("hello"))
		s := ask(t, healed(a, Fallback(b), RefusalRoute(r)))
		equal(t, "not for other failures", s.text, "other")
		equal(t, "asked", len(r.asked), 0)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b, c := model("a", refused), model("b", refused), model("c", says("hello"))
		s := ask(t, healed(a, Fallback(b, c)))
		if s.err != nil {
			t.Fatal(s.err)
		}
		equal(t, "a second refusal is the result, not an error", s.resp.Finish, ninelives.FinishRefusal)
		equal(t, "its words", s.resp.Message.Refusal(), "no")
		equal(t, "c asked", len(c.asked), 0)
		var said int
		for _, ev := range s.events {
			if d, ok := ev.(ninelives.RefusalDelta); ok {
				said++
				equal(t, "shown once, by the one that counts", d.Attempt, 2)
			}
		}
		equal(t, "refusals shown", said, 1)
	})
}

func TestMalformedCallIsDiscardedAndAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		broken := &ninelives.Response{Finish: ninelives.FinishToolCalls, Message: message(ninelives.ToolCall{Name: "f", Arguments: `{"a":`})}
		whole := &ninelives.Response{Finish: ninelives.FinishToolCalls, Message: message(ninelives.ToolCall{Name: "f", Arguments: `{"a":1}`})}
		a := model("a", step{{ev: ninelives.ToolCallDelta{Name: "f", Arguments: `{"a":`}}, end(broken)}, step{end(whole)})
		s := ask(t, healed(a))
		equal(t, "asked", a.since(t0), []time.Duration{0, ms(250)})
		equal(t, "call", s.resp.Message.ToolCalls()[0].Arguments, `{"a":1}`)
	})
}

// Gemini leaves a call out that it could not read: asking once more may help,
// and another candidate may.
func TestCallThatItsProviderCouldNotReadIsAskedForOnceMoreAndThenElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{end(&ninelives.Response{Finish: ninelives.FinishMalformedCall})})
		b := model("b", says("hello"))
		s := ask(t, healed(a, Fallback(b)))
		equal(t, "text", s.text, "hello")
		equal(t, "a asked", a.since(t0), []time.Duration{0, ms(250)})
		equal(t, "b asked", b.since(t0), []time.Duration{ms(250)})
	})
}

func TestCorrectionNamesAllProblemsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says(`{"x":"y"}`), fails(ninelives.ClassOverloaded), says(`still no JSON`))
		b := model("b", says(`{"n":1}`))
		req := ninelives.Prompt("n")
		req.Output = &ninelives.Output{Schema: []byte(`{"type":"object","required":["n","m"],"properties":{"x":{"type":"integer"}}}`)}
		s := watch(t.Context(), healed(a, Fallback(b)), req)
		var e *ninelives.OutputError
		if !errors.As(s.err, &e) || e.Raw != "still no JSON" {
			t.Fatalf("got %v", s.err)
		}
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{3, 0})
		for _, r := range a.requests[1:] {
			equal(t, "its own answer", r.Messages[1].Text(), `{"x":"y"}`)
			for _, want := range []string{"'n'", "'m'", "/x"} {
				if !strings.Contains(r.Messages[2].Text(), want) {
					t.Errorf("the correction does not name %s: %q", want, r.Messages[2].Text())
				}
			}
		}
	})
}

func TestSchemaThatIsNoneIsToldBeforeAnythingIsSent(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("{}"))
		req := ninelives.Prompt("n")
		req.Output = &ninelives.Output{Schema: []byte(`{"type": 7}`)}
		s := watch(t.Context(), healed(a), req)
		var f *ninelives.Fault
		equal(t, "fault", errors.As(s.err, &f) && f.Class == ninelives.ClassFormat && f.Phase == ninelives.PhasePrepare, true)
		equal(t, "asked", len(a.asked), 0)
	})
}

func TestGoTypeComesOutOfAHealedCall(t *testing.T) {
	type cat struct {
		Name  string `json:"name"`
		Lives int    `json:"lives"`
	}
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says(`{"name": "Tom", "lives": "nine"}`), says("Sorry! ```json\n{\"name\": \"Tom\", \"lives\": 9}\n```"))
		got, err := ninelives.GenerateAs[cat](t.Context(), healed(a), ninelives.Prompt("a cat"))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "value", got, cat{"Tom", 9})
		equal(t, "requests", len(a.asked), 2)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("no"))
		_, err := ninelives.GenerateAs[cat](t.Context(), healed(a), ninelives.Prompt("a cat"))
		var e *ninelives.OutputError
		equal(t, "raw text in the failure", errors.As(err, &e) && e.Raw == "no", true)
		equal(t, "asked for a correction once", len(a.asked), 2)
	})
}
