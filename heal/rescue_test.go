package heal

import (
	"errors"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// shown lists what a consumer was given, in one word each, notices left out.
func (s seen) shown() []string {
	var list []string
	for _, ev := range s.events {
		switch e := ev.(type) {
		case ninelives.TextDelta:
			list = append(list, "text:"+e.Text)
		case ninelives.ReasoningDelta:
			list = append(list, "thought:"+e.Text)
		case ninelives.RefusalDelta:
			list = append(list, "refusal:"+e.Text)
		case ninelives.ToolCallDelta:
			list = append(list, "call:"+e.Arguments)
		case ninelives.Discard:
			list = append(list, "discard")
		case ninelives.Done:
			list = append(list, "done")
		}
	}
	if s.err != nil {
		list = append(list, "error")
	}
	return list
}

var broken = act{err: fault(ninelives.ClassStreamBroken)}

func calls(arguments string) act {
	return act{ev: ninelives.ToolCallDelta{Part: 1, ID: "1", Name: "f", Arguments: arguments}}
}

func TestBrokenStreamIsRescuedByItsMode(t *testing.T) {
	const whole = "one two three four"
	for _, tc := range []struct {
		name string
		mode Mode
		a    []step
		want []string
		text string // the answer; empty for a failure
	}{
		{"restart voids what was shown", ModeRestart,
			[]step{{text("one "), text("two "), broken}, says(whole)},
			[]string{"text:one ", "text:two ", "discard", "text:" + whole, "done"}, whole},
		{"restart voids thoughts as well", ModeRestart,
			[]step{{thought("hm"), broken}, says(whole)},
			[]string{"thought:hm", "discard", "text:" + whole, "done"}, whole},
		{"restart of nothing voids nothing", ModeRestart,
			[]step{{broken}, says(whole)},
			[]string{"text:" + whole, "done"}, whole},
		{"continue goes on", ModeContinue,
			[]step{{text("one "), text("two "), broken}, says("three four")},
			[]string{"text:one ", "text:two ", "text:three four", "done"}, whole},
		{"continue swallows what is repeated", ModeContinue,
			[]step{{text("one "), text("two "), broken}, {text("o"), text("ne two "), text("three "), text("four"), end(answer(whole))}},
			[]string{"text:one ", "text:two ", "text:three ", "text:four", "done"}, whole},
		{"continue takes a repetition of the last words", ModeContinue,
			[]step{{text("one two three"), broken}, says("three four")},
			[]string{"text:one two three", "text: four", "done"}, whole},
		{"continue of a continuation", ModeContinue,
			[]step{{text("one "), broken}, {text("two "), broken}, says("three four")},
			[]string{"text:one ", "text:two ", "text:three four", "done"}, whole},
		{"continue delivers a call whole", ModeContinue,
			[]step{{text("one "), calls(`{"a`), broken},
				{text("two"), calls(`{"a":`), calls(`1}`), end(&ninelives.Response{Message: message(ninelives.Text{Text: "two"}, ninelives.ToolCall{ID: "1", Name: "f", Arguments: `{"a":1}`})})}},
			[]string{"text:one ", "text:two", `call:{"a":`, "call:1}", "done"}, "one two"},
		{"continue withholds the thoughts of the second", ModeContinue,
			[]step{{thought("hm"), broken}, {thought("ha"), text(whole), end(answer(whole))}},
			[]string{"thought:hm", "text:" + whole, "done"}, whole},
		{"hold delivers only what is complete", ModeHold,
			[]step{{thought("hm"), text("one "), broken}, {thought("ha"), text("one two "), text("three four"), end(answer(whole))}},
			[]string{"thought:ha", "text:one two ", "text:three four", "done"}, whole},
		{"fail ends with the fault", ModeFail,
			[]step{{text("one "), broken}, says(whole)},
			[]string{"text:one ", "error"}, ""},
		{"fail still heals what was not released", ModeFail,
			[]step{{broken}, says(whole)},
			[]string{"text:" + whole, "done"}, whole},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a := model("a", tc.a...)
				s := ask(t, healed(a, Rescue(tc.mode)))
				equal(t, "shown", s.shown(), tc.want)
				equal(t, "ends", s.ends, 1)
				if tc.text != "" {
					equal(t, "answer", s.resp.Text(), tc.text)
				}
			})
		})
	}
}

func TestContinuationGoesToTheFallbackThatRefusesPrefill(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		const whole = "Cats land on their feet because they turn in the air."
		a := model("a", step{text("Cats land on their feet "), broken}, step{broken})
		a.candidate.Prefill = true
		b := model("b", says(whole)) // answers from the start, whatever it is asked
		s := ask(t, healed(a, Fallback(b), Rescue(ModeContinue)))
		equal(t, "shown", s.text, whole)
		equal(t, "answer", s.resp.Text(), whole)
		equal(t, "a asked", len(a.asked), 2)
		equal(t, "a prefilled", len(a.requests[1].Messages), 2)
		equal(t, "b instructed", len(b.requests[0].Messages), 3)
	})
}

func TestContinuationThatTellsAnotherStoryIsNotStitched(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("Once upon a time there was a cat called Tom "), broken},
			says("Once upon a time there was a dog called Rex and nobody else."))
		s := ask(t, healed(a, Rescue(ModeContinue)))
		equal(t, "only the first was shown", s.text, "Once upon a time there was a cat called Tom ")
		equal(t, "no answer", s.resp == nil, true)
		var f *ninelives.Fault
		equal(t, "fault", errors.As(s.err, &f) && f.Class == ninelives.ClassStreamBroken, true)
	})
}

func TestWhatOnlyItsProviderUnderstandsIsNotContinued(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		f := fault(ninelives.ClassStreamBroken)
		f.Partial = &ninelives.Response{Message: message(ninelives.Opaque{Kind: "server_tool_use"}, ninelives.Text{Text: "one "})}
		a := model("a", step{text("one "), {err: f}}, says("two"))
		s := ask(t, healed(a, Rescue(ModeContinue)))
		equal(t, "asked once: the tool would run again", len(a.asked), 1)
		equal(t, "shown", s.shown(), []string{"text:one ", "error"})
	})
}

func TestSeveralChoicesAreNotContinued(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one "), broken}, says("two"))
		req := ninelives.Prompt("hi")
		req.N = 2
		watch(t.Context(), healed(a, Rescue(ModeContinue)), req)
		equal(t, "asked", len(a.asked), 1)
	})
}

func TestFormIsCheckedBeforeAConsumerThatCannotUnseeGetsAnything(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("wrong"), says(`{"n":1}`))
		req := ninelives.Prompt("hi")
		req.Output = &ninelives.Output{Schema: []byte(`{"type":"object"}`)}
		s := watch(t.Context(), healed(a, Rescue(ModeContinue)), req)
		equal(t, "shown", s.shown(), []string{`text:{"n":1}`, "done"})
	})
}

func TestBlanksAndRefusalsBuyNothing(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text(""), text(" \n"), declines("no"), broken}, says("hello"))
		s := ask(t, healed(a, Rescue(ModeFail)))
		equal(t, "shown", s.shown(), []string{"text:hello", "done"})
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("\n"), text("hello"), end(answer("\nhello"))})
		s := ask(t, healed(a))
		equal(t, "a blank comes with what follows it", s.shown(), []string{"text:\n", "text:hello", "done"})
	})
}

func TestHoldBackEndsByReleasing(t *testing.T) {
	refusal := func(words ...act) step {
		return append(words[:len(words):len(words)], end(&ninelives.Response{Finish: ninelives.FinishRefusal, Message: message(ninelives.Refusal{Text: "no"})}))
	}
	var many []act
	for range 65 {
		many = append(many, declines("n"))
	}
	for _, tc := range []struct {
		name     string
		a        step
		released bool
	}{
		{"64 events are held", refusal(many[:64]...), false},
		{"the 65th releases", refusal(many...), true},
		{"16 KiB of refusal are held", refusal(declines(strings.Repeat("n", 16<<10))), false},
		{"one more byte releases", refusal(declines(strings.Repeat("n", 16<<10)), declines("n")), true},
		{"256 KiB of blanks are held", refusal(text(strings.Repeat(" ", 256<<10))), false},
		{"one more byte releases", refusal(text(strings.Repeat(" ", 256<<10)), text(" ")), true},
		{"less than 10 s is held", refusal(declines("n"), wait(10*time.Second-1), declines("o")), false},
		{"10 s release", refusal(declines("n"), wait(10*time.Second), declines("o")), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				a, b := model("a", tc.a), model("b", says("hello"))
				s := ask(t, healed(a, Fallback(b)))
				// What was released of a refusal stands as the result.
				equal(t, "moved on", len(b.asked) == 1, !tc.released)
				equal(t, "ends", s.ends, 1)
				if s.err != nil {
					t.Error(s.err)
				}
			})
		})
	}
}

func TestRefusalAfterTextIsReportedAndTheTextStays(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		resp := &ninelives.Response{Finish: ninelives.FinishRefusal, Message: message(ninelives.Text{Text: "Well, "}, ninelives.Refusal{Text: "no"})}
		a, b := model("a", step{text("Well, "), declines("no"), end(resp)}), model("b", says("hello"))
		s := ask(t, healed(a, Fallback(b)))
		equal(t, "shown", s.shown(), []string{"text:Well, ", "refusal:no", "done"})
		equal(t, "finish", s.resp.Finish, ninelives.FinishRefusal)
		equal(t, "b asked", len(b.asked), 0)
	})
}

// Anthropic's models write a refusal as text and tell its kind at the end.
func TestRefusalAfterTextMovesOnWhereNobodyWatches(t *testing.T) {
	refuses := step{text("I cannot"), end(&ninelives.Response{Finish: ninelives.FinishRefusal, Message: message(ninelives.Text{Text: "I cannot"})})}
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", refuses), model("b", says("hello"))
		resp, err := ninelives.Generate(t.Context(), healed(a, Fallback(b)), ninelives.Prompt("hi"))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "text", resp.Text(), "hello")
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{1, 1})
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", refuses), model("b", refuses)
		resp, err := ninelives.Generate(t.Context(), healed(a, Fallback(b)), ninelives.Prompt("hi"))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "two refusals are a refusal", resp.Finish, ninelives.FinishRefusal)
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{1, 1})
	})
}

func TestEventsCarryTheNumberOfTheirAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("x"), broken}, step{thought("hm"), text("hello"), end(answer("hello"))})
		s := ask(t, healed(a))
		for _, ev := range s.events {
			switch e := ev.(type) {
			case ninelives.TextDelta:
				equal(t, e.Text, e.Attempt, map[string]int{"x": 1, "hello": 2}[e.Text])
			case ninelives.ReasoningDelta:
				equal(t, e.Text, e.Attempt, 2)
			case ninelives.Done:
				equal(t, "done", e.Attempt, 2)
			}
		}
		equal(t, "the provider is told", a.requests[1].Attempt.Number, 2)
	})
}

func TestStreamThatEndsWithoutAResultIsBroken(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("half")}, says("whole"))
		s := ask(t, healed(a))
		equal(t, "shown", s.shown(), []string{"text:half", "discard", "text:whole", "done"})
	})
}

func TestErrorsThatAreNoFaultsBecomeOnes(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		cause := errors.New("something odd")
		a := model("a", step{{err: cause}})
		s := ask(t, healed(a))
		var f *ninelives.Fault
		if !errors.As(s.err, &f) || f.Class != ninelives.ClassUnknown || f.Candidate != "a/m" || !errors.Is(s.err, cause) {
			t.Errorf("got %v", s.err)
		}
		equal(t, "retried", len(a.asked), 4)
	})
}

// gathered is the answer as the pieces shown of it make it up, part by part.
func (s seen) gathered() []string {
	var parts []string
	for _, ev := range s.events {
		part, text := 0, ""
		switch e := ev.(type) {
		case ninelives.TextDelta:
			part, text = e.Part, e.Text
		case ninelives.ReasoningDelta:
			part, text = e.Part, e.Text
		case ninelives.ToolCallDelta:
			part, text = e.Part, e.Arguments
		case ninelives.RefusalDelta:
			part, text = e.Part, e.Text
		default:
			continue
		}
		for len(parts) <= part {
			parts = append(parts, "")
		}
		parts[part] += text
	}
	return parts
}

func at(part int, ev ninelives.Event) act {
	switch e := ev.(type) {
	case ninelives.TextDelta:
		e.Part = part
		return act{ev: e}
	case ninelives.ReasoningDelta:
		e.Part = part
		return act{ev: e}
	case ninelives.ToolCallDelta:
		e.Part = part
		return act{ev: e}
	}
	panic("no piece of a part")
}

func TestContinuedAnswerIsMadeOfThePartsThatWereShown(t *testing.T) {
	said := func(s string) ninelives.Event { return ninelives.TextDelta{Text: s} }
	called := ninelives.ToolCallDelta{ID: "1", Name: "f", Arguments: `{}`}
	call := ninelives.ToolCall{ID: "1", Name: "f", Arguments: `{}`}
	for _, tc := range []struct {
		name  string
		steps []step
		shown []string
		parts []ninelives.Part
	}{
		{"after thinking", []step{
			{at(0, ninelives.ReasoningDelta{Text: "hm"}), at(1, said("one ")), broken},
			{at(0, ninelives.ReasoningDelta{Text: "ha"}), at(1, said("two")), end(&ninelives.Response{Message: message(ninelives.Reasoning{Text: "ha"}, ninelives.Text{Text: "two"})})}},
			[]string{"hm", "one two"}, []ninelives.Part{ninelives.Reasoning{Text: "hm"}, ninelives.Text{Text: "one two"}}},
		{"by a call alone", []step{
			{at(0, said("one ")), broken},
			{at(0, called), end(&ninelives.Response{Message: message(call)})}},
			[]string{"one ", "{}"}, []ninelives.Part{ninelives.Text{Text: "one "}, call}},
		{"by a repetition and a call", []step{
			{at(0, said("one two three")), broken},
			{at(0, said("three")), at(1, called), end(&ninelives.Response{Message: message(ninelives.Text{Text: "three"}, call)})}},
			[]string{"one two three", "{}"}, []ninelives.Part{ninelives.Text{Text: "one two three"}, call}},
		{"by thinking between texts", []step{
			{at(0, said("one ")), broken},
			{at(0, said("two ")), at(1, ninelives.ReasoningDelta{Text: "hm"}), at(2, said("three")),
				end(&ninelives.Response{Message: message(ninelives.Text{Text: "two "}, ninelives.Reasoning{Text: "hm"}, ninelives.Text{Text: "three"})})}},
			[]string{"one two ", "three"}, []ninelives.Part{ninelives.Text{Text: "one two "}, ninelives.Text{Text: "three"}}},
		{"with what its provider alone understands", []step{
			{at(0, said("one ")), broken},
			{at(1, said("two")), end(&ninelives.Response{Message: message(ninelives.Opaque{Kind: "search"}, ninelives.Text{Text: "two"})})}},
			[]string{"one ", "", "two"}, []ninelives.Part{ninelives.Text{Text: "one "}, ninelives.Opaque{Kind: "search"}, ninelives.Text{Text: "two"}}},
		{"a call that had begun is made anew, and what followed it as well", []step{
			{at(0, said("one ")), at(1, called), at(2, said("lost")), broken},
			{at(0, said("two ")), at(1, called), at(2, said("three")), end(&ninelives.Response{Message: message(ninelives.Text{Text: "two "}, call, ninelives.Text{Text: "three"})})}},
			[]string{"one two ", "{}", "three"}, []ninelives.Part{ninelives.Text{Text: "one two "}, call, ninelives.Text{Text: "three"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, t0 time.Time) {
				s := ask(t, healed(model("a", tc.steps...), Rescue(ModeContinue)))
				if s.err != nil {
					t.Fatal(s.err)
				}
				equal(t, "shown", s.gathered(), tc.shown)
				equal(t, "accepted", s.resp.Message.Parts, tc.parts)
			})
		})
	}
}

func TestPartThatNobodySawIsNotContinued(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one "), at(2, ninelives.TextDelta{Text: "two"}), broken}, says("three"))
		s := ask(t, healed(a, Rescue(ModeContinue)))
		equal(t, "asked once: a tool of the provider's own would run again", len(a.asked), 1)
		equal(t, "shown", s.shown(), []string{"text:one ", "text:two", "error"})
	})
}

func TestRefusalThatBreaksIsNotContinued(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("Well, "), declines("I can"), broken}, says("three"))
		s := ask(t, healed(a, Rescue(ModeContinue)))
		equal(t, "shown", s.shown(), []string{"text:Well, ", "refusal:I can", "error"})
	})
}

func TestRefusalAsAnErrorIsFlaggedAndHasNoCall(t *testing.T) {
	refused := func(partial *ninelives.Response) act {
		f := fault(ninelives.ClassRefusal)
		f.Partial = partial
		return act{err: f}
	}
	bubble(t, func(t *testing.T, t0 time.Time) {
		s := ask(t, healed(model("a", step{text("Well, "), refused(&ninelives.Response{Message: message(ninelives.Text{Text: "Well, "})})})))
		equal(t, "shown", s.shown(), []string{"text:Well, ", "done"})
		equal(t, "flag", s.resp.Finish, ninelives.FinishRefusal)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one "), broken}, step{refused(&ninelives.Response{Message: message(ninelives.Text{Text: ""})})})
		s := ask(t, healed(a, Rescue(ModeContinue)))
		equal(t, "what the consumer holds stays in the answer", s.resp.Text(), "one ")
		equal(t, "flag", s.resp.Finish, ninelives.FinishRefusal)
	})
	for _, mode := range []Mode{ModeRestart, ModeContinue, ModeHold} {
		bubble(t, func(t *testing.T, t0 time.Time) {
			s := ask(t, healed(model("a", step{text("x"), calls(`{"a`), refused(&ninelives.Response{Message: message(ninelives.Text{Text: "x"})})}), Rescue(mode)))
			var f *ninelives.Fault
			equal(t, string(mode)+": half a call is never handed out", errors.As(s.err, &f) && f.Class == ninelives.ClassRefusal, true)
		})
	}
}

func TestContinuationsAreCountedAndSoIsWhatTheyUsed(t *testing.T) {
	count := func(input, cached, output, reasoning int, apart bool) ninelives.Usage {
		return ninelives.Usage{Input: input, Cached: cached, Output: output, Reasoning: reasoning, InputExcludesCached: apart, OutputExcludesReasoning: apart,
			Reported: ninelives.UsageInput | ninelives.UsageOutput}
	}
	last := answer("three")
	last.Usage = count(100, 50, 10, 4, false)
	bubble(t, func(t *testing.T, t0 time.Time) {
		first := cut("one ")
		first.Usage = count(10, 5, 6, 2, true)
		second := cut("two ")
		second.Usage = count(20, 0, 3, 0, true)
		s := ask(t, healed(model("a", step{text("one "), end(first)}, step{text("two "), end(second)}, step{text("three"), end(last)})))
		equal(t, "continued", s.resp.Continued, 2)
		equal(t, "in all", []int{s.resp.Usage.TotalInput(), s.resp.Usage.TotalOutput()}, []int{10 + 5 + 20 + 100, 6 + 2 + 3 + 10})
		equal(t, "reported", s.resp.Usage.Has(ninelives.UsageOutput), true)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		s := ask(t, healed(model("a", step{text("one "), broken}, step{text("two "), broken}, step{text("three"), end(last)}), Rescue(ModeContinue)))
		equal(t, "continued", s.resp.Continued, 2)
		equal(t, "what is known of it is not called all of it", s.resp.Usage.Has(ninelives.UsageOutput), false)
	})
}
