package agent

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Verdict is what the guard says to what is about to happen.
type Verdict string

// The verdicts. The zero value lets it happen.
const (
	VerdictAllow  Verdict = ""
	VerdictWait   Verdict = "wait"   // after Ruling.Wait, when it is asked again
	VerdictRefuse Verdict = "refuse" // the call is answered with Ruling.Message; the turn goes on
	VerdictNotice Verdict = "notice" // Ruling.Message is told to the model; the turn goes on
	VerdictStop   Verdict = "stop"   // the turn ends; it is never retried
)

// The limits, as they stand in [Ruling], [End] and [Grant]. Those of one tool
// and of one file are made by [LimitOfTool], [LimitOfFile] and [LimitOfRate].
const (
	LimitEvents     = "events"
	LimitCalls      = "calls"
	LimitDuration   = "duration"
	LimitCost       = "cost"
	LimitRate       = "rate"
	LimitLoop       = "loop"
	LimitCycle      = "cycle"
	LimitChant      = "chant"
	LimitDenials    = "denials"
	LimitIterations = "iterations"
)

// LimitOfTool is the limit on the calls of one tool: "tool:NAME".
func LimitOfTool(name string) string { return "tool:" + name }

// LimitOfFile is the limit on the edits of one file: "file:PATH".
func LimitOfFile(path string) string { return "file:" + path }

// LimitOfRate is the limit on the calls of one tool in a minute: "rate:NAME".
func LimitOfRate(name string) string { return "rate:" + name }

// Ruling is the guard's word; the zero value is "go on".
type Ruling struct {
	Verdict Verdict
	// Limit is what was reached; empty where nothing was.
	Limit string
	// Message says it: to the user with the counters for a stop, to the model
	// for a notice and a refusal, to those who watch for a wait.
	Message string
	// Wait is how long a call waits, for VerdictWait.
	Wait time.Duration
}

// Tally is what the guard counts of a turn. The zero value is that of a turn
// that begins.
type Tally struct {
	// Events are the events of all streams of the turn.
	Events int
	// Calls, PerTool and PerFile count the calls that were begun, and the files
	// that they were to write or delete.
	Calls   int
	PerTool map[string]int
	PerFile map[string]int
	// Elapsed is how long the turn has been at work, without the time during
	// which nobody worked at it (between a crash and its resumption).
	Elapsed time.Duration
	// Cost is in US dollars.
	Cost float64
	// Denied counts the denied calls since the last one that was not.
	Denied int
	// Recent are the last calls that have a result, oldest first, without those
	// that poll; Step is the answer that the last result of all belongs to.
	Recent []Trace
	Step   int
	// Started are the calls of the last minute, oldest first.
	Started []CallStart
	// Granted is how many full quotas the user has added, by limit.
	Granted map[string]int
}

// Trace is what the loop guard knows of a call that has a result.
type Trace struct {
	// Step is the answer that the call came from, counted from 1 within the
	// turn; zero means that it is not known.
	Step int
	Name string
	// Call and Result are hashes of the canonical arguments and of the result.
	Call   string
	Result string
	// Changed: the call has changed a file.
	Changed bool
	// Polls: asking the same again is what the tool is for (tool.Spec.Polls).
	Polls bool
}

// CallStart is when a call was begun.
type CallStart struct {
	Name string
	At   time.Time
}

// recentKept is how many traces a tally keeps: more than any sensible setting
// of the loop guard looks at.
const recentKept = 256

// Begin counts a call that is about to run. Files are those that it would
// write or delete.
func (t *Tally) Begin(name string, files []string, at time.Time) {
	t.Calls++
	if t.PerTool == nil {
		t.PerTool = map[string]int{}
	}
	t.PerTool[name]++
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			continue
		}
		if t.PerFile == nil {
			t.PerFile = map[string]int{}
		}
		t.PerFile[file]++
	}
	gone := 0
	for gone < len(t.Started) && !t.Started[gone].At.After(at.Add(-rateWindow)) {
		gone++
	}
	t.Started = append(t.Started[gone:], CallStart{Name: name, At: at})
}

// Finish counts the result of a call, denied or not. What polls leaves no trace.
func (t *Tally) Finish(trace Trace, denied bool) {
	if denied {
		t.Denied++
	} else {
		t.Denied = 0
	}
	t.Step = trace.Step
	if trace.Polls {
		return
	}
	// What is cut off goes when the slice grows next: nothing is moved for each call.
	t.Recent = append(t.Recent[max(0, len(t.Recent)-recentKept+1):], trace)
}

// Grant adds a full quota of a limit, by the user's word alone: the same
// number again for a cap, a fresh start for a loop and for denials.
func (t *Tally) Grant(limit string) {
	if t.Granted == nil {
		t.Granted = map[string]int{}
	}
	t.Granted[limit]++
	switch limit {
	case LimitLoop, LimitCycle:
		t.Recent = nil
	case LimitDenials:
		t.Denied = 0
	}
}

// Clone is a copy that shares nothing with t.
func (t *Tally) Clone() Tally {
	c := t.fork()
	c.Recent = slices.Clone(t.Recent)
	c.Started = slices.Clone(t.Started)
	return c
}

// fork is a copy that counts on by itself. Traces and starts are shared: they
// are added to and never changed.
func (t *Tally) fork() Tally {
	c := *t
	c.PerTool = maps.Clone(t.PerTool)
	c.PerFile = maps.Clone(t.PerFile)
	c.Granted = maps.Clone(t.Granted)
	c.Recent = slices.Clip(t.Recent)
	c.Started = slices.Clip(t.Started)
	return c
}

// during is a copy of what the guard looks at while a model speaks.
func (t *Tally) during() Tally {
	return Tally{Events: t.Events, Calls: t.Calls, Elapsed: t.Elapsed, Cost: t.Cost, Granted: maps.Clone(t.Granted)}
}

// quota is a cap with what the user has granted on top. Zero and less is no cap.
func (t *Tally) quota(limit string, maximum int) int { return maximum * (1 + t.Granted[limit]) }

// BeforeCall rules on a call that is not yet counted in t: the caps on calls,
// on the calls of its tool and on edits of its files stop the turn; the rates
// make it wait or refuse it. Files are those that it would write or delete. The
// caps of During are not looked at.
//
// Source: design 001, layer 3.
func (g *GuardSettings) BeforeCall(t *Tally, name string, files []string, at time.Time) Ruling {
	if g.Calls > 0 && t.Calls >= g.Calls {
		if most := t.quota(LimitCalls, g.Calls); t.Calls >= most {
			return t.stop(LimitCalls, fmt.Sprintf("reached maximum of %d tool invocations", most))
		}
	}
	if most := g.PerTool[name]; most > 0 && t.PerTool[name] >= most {
		limit := LimitOfTool(name)
		if most = t.quota(limit, most); t.PerTool[name] >= most {
			return t.stop(limit, fmt.Sprintf("reached maximum of %d %s invocations", most, plain(name)))
		}
	}
	if g.SameFile > 0 {
		for _, file := range files {
			if t.PerFile[file] < g.SameFile {
				continue
			}
			limit := LimitOfFile(file)
			if most := t.quota(limit, g.SameFile); t.PerFile[file] >= most {
				return t.stop(limit, fmt.Sprintf("file loop: reached maximum of %d edits of %s", most, plain(file)))
			}
		}
	}
	return g.rate(t, name, at)
}

// During rules on the turn as a whole: stream events, time and money. It is
// cheap enough to be asked at every event of a stream.
//
// Source: design 001, layer 3; the cap on cost is the design's, section 6.
func (g *GuardSettings) During(t *Tally) Ruling {
	if (g.Events <= 0 || t.Events < g.Events) &&
		(g.Duration <= 0 || t.Elapsed < g.Duration) &&
		(g.Cost <= 0 || t.Cost < g.Cost) {
		return Ruling{}
	}
	return g.during(t)
}

func (g *GuardSettings) during(t *Tally) Ruling {
	if g.Events > 0 {
		if most := t.quota(LimitEvents, g.Events); t.Events >= most {
			return t.stop(LimitEvents, fmt.Sprintf("reached maximum of %d stream events", most))
		}
	}
	if g.Duration > 0 {
		if most := g.Duration * time.Duration(1+t.Granted[LimitDuration]); t.Elapsed >= most {
			return t.stop(LimitDuration, "reached maximum duration of "+duration(most))
		}
	}
	if g.Cost > 0 {
		if most := g.Cost * float64(1+t.Granted[LimitCost]); t.Cost >= most {
			return t.stop(LimitCost, "reached maximum cost of "+dollars(most))
		}
	}
	return Ruling{}
}

// AfterCalls rules on the calls of a step, all of them counted in t: denials
// in a row, loops and cycles.
func (g *GuardSettings) AfterCalls(t *Tally) Ruling {
	if g.Denials > 0 && t.Denied >= g.Denials {
		return t.stop(LimitDenials, fmt.Sprintf("%d tool invocations in a row were denied", t.Denied))
	}
	if r := g.cycle(t); r.Verdict != VerdictAllow {
		return r
	}
	return g.loop(t)
}

// Chanted is the stop for a model whose text goes round in circles (see [Chant]).
func (g *GuardSettings) Chanted(t *Tally) Ruling {
	return t.stop(LimitChant, fmt.Sprintf("loop detected: the model repeated the same text %d times", g.ChantRepeats))
}

// stop ends the turn. Source of the message's form: design 001, layer 3.
func (t *Tally) stop(limit, why string) Ruling {
	return Ruling{Verdict: VerdictStop, Limit: limit, Message: t.StopMessage(why)}
}

// StopMessage tells a person why a turn was stopped, with the counters: three
// lines, of which the first ends in why ("reached maximum of 500 iterations").
// Source: design 001, layer 3.
func (t *Tally) StopMessage(why string) string {
	return fmt.Sprintf("Forced stop: %s.\nEvents: %d · Tool calls: %d · Elapsed: %s.\nPlease review the work completed so far.",
		why, t.Events, t.Calls, duration(t.Elapsed))
}

// duration writes "34m 23s": whole seconds, no unit that is zero but the last.
func duration(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	var parts []string
	if h := s / 3600; h > 0 {
		parts = append(parts, strconv.FormatInt(h, 10)+"h")
	}
	if m := s / 60 % 60; m > 0 {
		parts = append(parts, strconv.FormatInt(m, 10)+"m")
	}
	if s%60 > 0 || len(parts) == 0 {
		parts = append(parts, strconv.FormatInt(s%60, 10)+"s")
	}
	return strings.Join(parts, " ")
}

// dollars writes cents, and more digits where there would be nothing else.
func dollars(d float64) string {
	if d < 0.01 {
		return "$" + strconv.FormatFloat(d, 'f', -1, 64)
	}
	return "$" + strconv.FormatFloat(d, 'f', 2, 64)
}

// plain gives a name that a model chose a form that stays in its line.
func plain(name string) string {
	for _, r := range name {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return strconv.Quote(name)
		}
	}
	return name
}
