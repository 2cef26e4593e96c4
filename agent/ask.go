package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// ask makes one request to the model and records what came of it.
func (t *turn) ask(a Action) error {
	if !t.step {
		t.step = true
		if t.hooked("BeforeIteration", func(h *Hook) bool { return h.BeforeIteration != nil }, func(h *Hook) Intervention {
			return h.BeforeIteration(t.ctx, t.s.State())
		}) {
			return nil // what they want is looked at first
		}
	}
	if err := t.commit(); err != nil {
		return err
	}
	t.warn()
	req, print := t.request(a)
	t.announce(a.Inputs)
	for i := range t.a.hooks {
		if h := &t.a.hooks[i]; h.BeforeModel != nil {
			t.guard(h, "BeforeModel", func() { h.BeforeModel(t.ctx, a.Purpose, req) })
		}
	}
	ctx, cancel := t.bounded()
	defer cancel()
	began := time.Now()
	got := t.stream(ctx, a.Purpose, req)
	took := time.Since(began)
	t.step = false

	t.s.mu.Lock()
	st := t.s.st
	number, step := st.turn().Number, st.turn().Steps+1
	var told []Entry
	if notices := worthKeeping(got.notices); len(notices) > 0 {
		told = append(told, Healing{Turn: number, Purpose: a.Purpose, Notices: notices})
	}
	answer := Answer{Turn: number, Step: step, Purpose: a.Purpose} // of a failed request its place alone
	if got.err == nil {
		resp := got.resp
		answer = Answer{
			Turn: number, Step: step, Purpose: a.Purpose, Inputs: a.Inputs,
			Message: st.own(resp.Message, number, step), Finish: resp.Finish,
			Usage: resp.Usage, Cost: priceOf(t.model, resp.Candidate).Cost(resp.Usage),
			Candidate: resp.Candidate, IsFallback: resp.IsFallback, Attempts: resp.Attempts,
			Events: got.events, Warnings: resp.Warnings, Request: print, Output: resp.Output, Took: took,
		}
		told = append(told, answer)
		t.within = true
		t.after = append(t.after, Answered{answer})
	} else {
		f := failure(got.err)
		f.Turn, f.Step, f.Purpose, f.Events, f.Took = number, step, a.Purpose, got.events, took
		f.Canceled = ctx.Err() != nil || got.ruled != nil
		if f.Canceled {
			f.Cut, f.Broken = false, ""
		}
		if f.Fault != nil && f.Fault.Partial != nil {
			f.Usage = f.Fault.Partial.Usage
			f.Cost = priceOf(t.model, f.Fault.Candidate).Cost(f.Usage)
		}
		told = append(told, f)
		if got.ruled != nil {
			told = append(told, Ruled{Turn: number, Limit: got.ruled.Limit, Message: got.ruled.Message, Stop: true})
		}
	}
	t.s.stageLocked(told...)
	t.s.mu.Unlock()

	for i := range t.a.hooks {
		h := &t.a.hooks[i]
		if h.AfterModel == nil {
			continue
		}
		if err := t.commit(); err != nil {
			return err
		}
		t.guard(h, "AfterModel", func() { h.AfterModel(t.ctx, answer, got.err) })
	}
	return nil
}

// warn says once that the window fills up.
func (t *turn) warn() {
	t.s.mu.Lock()
	share, level := t.s.st.pressure()
	t.s.mu.Unlock()
	if level != LevelOK && !t.warned {
		t.warned = true
		t.emit(Warning{Text: fmt.Sprintf("the conversation fills %.0f %% of the model's window", share*100)})
	}
}

// announce tells of steered input that the request takes up.
func (t *turn) announce(inputs []int) {
	t.s.mu.Lock()
	var said []Steered
	for _, in := range t.s.st.waiting {
		if !in.Note && in.Number > t.told && slices.Contains(inputs, in.Number) {
			said = append(said, Steered{Number: in.Number, Text: in.Message.Text()})
			t.told = in.Number
		}
	}
	t.s.mu.Unlock()
	for _, e := range said {
		t.emit(e)
	}
}

// request is what is asked, and its hash.
func (t *turn) request(a Action) (*ninelives.Request, string) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	st := t.s.st
	system := st.run.start.System
	x := st.context()
	x.Messages, x.Through = slices.Clip(x.Messages), slices.Clip(x.Through)
	print := t.s.printed.of(st, system)
	next := len(st.messages)
	for _, in := range st.waiting {
		if slices.Contains(a.Inputs, in.Number) {
			x.Messages, x.Through = append(x.Messages, in.Message), append(x.Through, next)
			print = chain(print, in.Message)
			next++
		}
	}
	req := &ninelives.Request{
		Messages: t.sent(system, x.Messages),
		Tools:    t.tools.list,
		Output:   t.set.Output,
		CacheKey: t.s.ID(),
	}
	if a.Purpose == PurposeFinal {
		req.ToolChoice.Mode = ninelives.ToolChoiceNone // the tools stay, for the provider's cache
		if len(req.Tools) == 0 {
			req.ToolChoice.Mode = ""
		}
	}
	compaction := t.set.Compaction
	req.Fit = func(tokens int) (*ninelives.Request, error) {
		fitted, err := compaction.Fit(x, tokens)
		if err != nil {
			return nil, err
		}
		c := *req
		c.Messages = t.sent(system, fitted)
		return &c, nil
	}
	return req, hex.EncodeToString(print[:16])
}

// sent puts the instruction before the view, and marks where providers should
// cache: after the instruction, which stays for the whole turn, and after the
// last two messages, so that the next request finds this one.
func (t *turn) sent(system string, view []ninelives.Message) []ninelives.Message {
	out := make([]ninelives.Message, 0, len(view)+1)
	if system != "" {
		out = append(out, cached(ninelives.SystemText(system)))
	}
	out = append(out, view...)
	for i := len(out) - 1; i >= max(1, len(out)-2); i-- {
		out[i] = cached(out[i])
	}
	return out
}

// cached marks the end of a message.
func cached(m ninelives.Message) ninelives.Message {
	if len(m.Parts) == 0 {
		return m
	}
	parts := slices.Clone(m.Parts)
	hint := &ninelives.CacheHint{}
	switch p := parts[len(parts)-1].(type) {
	case ninelives.Text:
		p.Cache = hint
		parts[len(parts)-1] = p
	case ninelives.Image:
		p.Cache = hint
		parts[len(parts)-1] = p
	case ninelives.ToolCall:
		p.Cache = hint
		parts[len(parts)-1] = p
	case ninelives.ToolResult:
		p.Cache = hint
		parts[len(parts)-1] = p
	default:
		return m
	}
	m.Parts = parts
	return m
}

// got is what came of a request.
type got struct {
	resp    *ninelives.Response
	err     error
	events  int
	notices []ninelives.Notice
	ruled   *Ruling // the guard stopped it
}

// stream makes the request, hands its events on, and lets the guard look at each.
func (t *turn) stream(ctx context.Context, p Purpose, req *ninelives.Request) (g got) {
	t.s.mu.Lock()
	number, step := t.s.st.turn().Number, t.s.st.turn().Steps+1
	tally := t.s.st.run.tally.during()
	began := t.s.st.tally(now()).Elapsed
	t.s.mu.Unlock()
	start := time.Now()
	chant := t.set.Guard.Chant()
	defer func() {
		if r := recover(); r != nil {
			if _, theirs := r.(consumerPanic); theirs {
				panic(r.(consumerPanic).value)
			}
			g.err = caught("the model", r)
		}
	}()
	for ev, err := range t.model.Stream(ctx, req) {
		if err != nil {
			g.err = err
			return g
		}
		var rule Ruling
		switch e := ev.(type) {
		case ninelives.Done:
			if e.Response == nil {
				g.err = errNoResponse
			} else if f := assess(req, e.Response); f != nil {
				g.err = f
			} else {
				resp := *e.Response
				g.resp = &resp
			}
			return g
		case ninelives.Notice:
			g.notices = append(g.notices, e)
		case ninelives.Discard:
			chant = t.set.Guard.Chant()
		case ninelives.TextDelta:
			g.events++
			tally.Events++
			t.s.pool.event()
			if chant.Add(e.Text) {
				rule = t.set.Guard.Chanted(&tally)
			}
		default:
			g.events++
			tally.Events++
			t.s.pool.event()
		}
		t.passOn(Model{Turn: number, Step: step, Purpose: p, Event: ev})
		tally.Elapsed = began + time.Since(start)
		if rule.Verdict != VerdictStop {
			rule = t.during(tally)
		}
		if rule.Verdict == VerdictStop {
			g.ruled = &rule
			g.err = &ninelives.Fault{Class: ninelives.ClassGuard, Message: oneLine(rule.Message)}
			return g
		}
		if t.left {
			break
		}
	}
	g.err = errNoResponse
	if ctx.Err() != nil {
		g.err = &ninelives.Fault{Class: ninelives.ClassCanceled, Message: "stopped", Err: context.Cause(ctx)}
	}
	return g
}

// during is the guard's word on a turn that has counted that much by itself.
func (t *turn) during(tally Tally) Ruling {
	if others := t.s.pool.others(); !others.none() {
		tally.Events += others.Events
		tally.Calls += others.Calls
		tally.Cost += others.Cost
	}
	return t.set.Guard.During(&tally)
}

// consumerPanic carries a panic of whoever loops over the turn's events through
// the model's iterator, so that it is not taken for the model's own.
type consumerPanic struct{ value any }

func (t *turn) passOn(e Event) {
	defer func() {
		if r := recover(); r != nil {
			panic(consumerPanic{r})
		}
	}()
	t.emit(e)
}

var errNoResponse = &ninelives.Fault{Class: ninelives.ClassStreamBroken, Phase: ninelives.PhaseStream, Message: ninelives.ErrNoEnd.Error(), Err: ninelives.ErrNoEnd}

// assess says why an answer cannot be taken; nil if it can, if only with the
// flag that it is cut or a refusal.
func assess(req *ninelives.Request, resp *ninelives.Response) *ninelives.Fault {
	outcome, fault := heal.Judge(req, resp, ninelives.Candidate{})
	calls := len(resp.Message.ToolCalls()) > 0
	switch outcome {
	case ninelives.OutcomeTruncated:
		if !calls && strings.TrimSpace(resp.Text()) != "" {
			return nil
		}
	case ninelives.OutcomeRefused:
		if !calls {
			return nil
		}
	case ninelives.OutcomeInvalidOutput:
		if resp.OutputDefaulted || resp.Degraded != "" {
			return nil
		}
	}
	return fault
}

// failure makes a record of a request that failed.
func failure(err error) Failure {
	f := Failure{Text: oneLine(err.Error())}
	if !errors.As(err, &f.Fault) {
		f.Fault = &ninelives.Fault{Class: ninelives.ClassUnknown, Message: f.Text}
	}
	if f.Fault.Phase != ninelives.PhaseAnswer {
		return f
	}
	switch f.Fault.Class {
	case ninelives.ClassTruncated, ninelives.ClassStreamBroken, ninelives.ClassFormat:
	default:
		return f
	}
	var calls []ninelives.ToolCall
	finish := ninelives.FinishReason("")
	if p := f.Fault.Partial; p != nil {
		calls, finish = p.Message.ToolCalls(), p.Finish
	}
	// Where a cut answer has no call in it, it may have been in the middle of one
	// all the same: some providers leave out what does not close.
	cut := finish == ninelives.FinishLength || f.Fault.Class == ninelives.ClassTruncated
	f.Cut = cut || len(calls) > 0 || finish == ninelives.FinishMalformedCall
	if cut {
		return f
	}
	for _, c := range calls {
		switch err := wellFormed(c.Arguments); {
		case c.Name == "":
			f.Broken = "a call had no name"
		case err == nil, errors.Is(err, io.ErrUnexpectedEOF):
		default:
			f.Broken = fmt.Sprintf("the arguments of %s are no valid JSON (%s)", plain(c.Name), oneLine(err.Error()))
		}
	}
	if finish == ninelives.FinishMalformedCall {
		f.Broken = "the provider could not read the call"
	}
	return f
}

// wellFormed says what is wrong with a JSON text.
func wellFormed(text string) error {
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err := d.SkipValue(); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// own gives the answer ids of calls that no other call of the session has.
func (s *State) own(m ninelives.Message, turn, step int) ninelives.Message {
	m.Role = ninelives.RoleAssistant
	m.Parts = slices.Clone(m.Parts)
	here := map[string]bool{}
	for i, p := range m.Parts {
		c, ok := p.(ninelives.ToolCall)
		if !ok {
			continue
		}
		taken := func(id string) bool { _, used := s.ids[id]; return used || here[id] }
		for n := i; c.ID == "" || taken(c.ID); n++ {
			c.ID = fmt.Sprintf("call_%d_%d_%d", turn, step, n)
		}
		here[c.ID] = true
		m.Parts[i] = c
	}
	return m
}

// worthKeeping are the notices of a request that was not simply answered.
func worthKeeping(notices []ninelives.Notice) []ninelives.Notice {
	for _, n := range notices {
		if n.Kind != ninelives.NoticePlan && n.Kind != ninelives.NoticeAttempt {
			return notices
		}
	}
	return nil
}

// priceOf is the price of the candidate of that name; of the first of the chain
// where the name is unknown.
func priceOf(m ninelives.Model, name string) ninelives.Price {
	if c, ok := candidateNamed(m, name); ok {
		return c.Price
	}
	c, _ := ninelives.CandidateOf(m)
	if name != "" && name != c.Name() {
		return ninelives.Price{}
	}
	return c.Price
}

func candidateNamed(m ninelives.Model, name string) (ninelives.Candidate, bool) {
	if c, ok := m.(interface{ Candidate() ninelives.Candidate }); ok {
		return c.Candidate(), c.Candidate().Name() == name
	}
	switch u := m.(type) {
	case interface{ Unwrap() ninelives.Model }:
		return candidateNamed(u.Unwrap(), name)
	case interface{ Unwrap() []ninelives.Model }:
		for _, m := range u.Unwrap() {
			if c, ok := candidateNamed(m, name); ok {
				return c, true
			}
		}
	}
	return ninelives.Candidate{}, false
}

// fingerprint is the hash of a view, kept so that each message is hashed once.
type fingerprint struct {
	views, n int
	sum      [sha256.Size]byte
}

func (d *fingerprint) of(st *State, system string) [sha256.Size]byte {
	if d.n == 0 || d.views != st.views || d.n > len(st.view) {
		*d = fingerprint{views: st.views}
	}
	for ; d.n < len(st.view); d.n++ {
		d.sum = chain(d.sum, st.view[d.n])
	}
	return chain(d.sum, ninelives.SystemText(system))
}

// chain adds a message to a hash.
func chain(sum [sha256.Size]byte, m ninelives.Message) [sha256.Size]byte {
	text, err := json.Marshal(m, form)
	if err != nil {
		text = []byte(err.Error())
	}
	return sha256.Sum256(append(sum[:], text...))
}
