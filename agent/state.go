package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// State is what the entries of a session come to. It is built by adding
// entries one after the other and by nothing else. A State that is handed out
// does not change any more.
type State struct {
	opening  Opening
	messages []ninelives.Message
	// view is what the model is sent of messages, through where each of its
	// messages ends in them (see Context), tokens their estimate.
	view        []ninelives.Message
	through     []int
	tokens      int
	views       int // how often the view was made anew
	compactions []compacted
	strikes     int
	archived    int // messages before this one are in the archive

	accepted int     // number of the last input
	waiting  []Input // inputs that no turn has taken up; replaced, never changed
	ids      map[string]struct{}

	turns []Turn
	run   run // of the last turn
	// shared is what the turn that this session was opened for had counted by then.
	shared *Tally

	mode      tool.Mode
	model     string
	signature string
	window    int // that the last turn was planned for
	overhead  int
	reserve   int
	learnt    int // what a provider has said of its window; zero for nothing
	rules     []tool.Rule
	usage     ninelives.Usage
	cost      float64
	undone    []int // turns whose changes were taken back, the last one last
	todo      []tool.Task
	last      time.Time // of the last entry
	gaps      int       // places where entries are missing
}

// compacted is a compaction that was taken, and how long the history was then.
type compacted struct {
	Compaction
	at int
}

// run is what the decider must know of the last turn. It begins anew when the
// turn goes on after an end.
type run struct {
	start  Start
	began  time.Time     // this stretch of it
	before time.Duration // all earlier stretches
	idle   time.Duration // of this stretch: a person was waited for
	tally  Tally

	steps  int // answers to requests for a step, since a quota was granted
	calls  []pendingCall
	answer *Answer  // the last one
	failed *Failure // the last request, if it gave no answer

	cuts      int  // answers that were cut off, in a row
	told      bool // the model was told of the last one
	overflows int  // contexts that were too long, in a row
	compacted bool // since the last request
	stuck     bool // that compaction could do nothing
	effects   int  // results of calls, in this turn
	lastWord  bool // the model was told that the next answer is its last
	capped    bool // it has given it
	ruled     *Ruled
	noticed   int // effects at the last notice of the loop guard
	stopped   *Stopped
	denied    bool // the user has said no to a call, and that the turn ends
}

// pendingCall is a call of the last answer.
type pendingCall struct {
	ninelives.ToolCall
	intent  *Intent
	effect  *Effect
	counted bool // by the guard
}

// Turn is what is known of one turn.
type Turn struct {
	Number int
	// First is the index of its first message in [State.Messages].
	First int
	// Text is what the user said to begin it.
	Text  string
	Model string
	Began time.Time
	// Steps, Calls and Events count its answers, calls and stream events.
	Steps, Calls, Events int
	Usage                ninelives.Usage
	Cost                 float64
	// Changes are the file changes of its calls, in order.
	Changes []tool.Change
	// Unknown are the tools of its calls that were cut off, of which nobody can
	// say what they changed.
	Unknown []string
	// End is how it ended; nil while it is open: it runs, or its process died.
	End *End
	// Rewound: the model has forgotten it. Undone: its file changes were taken back.
	Rewound bool
	Undone  bool
}

// Messages are the whole history, as it was said: it only grows. What the model
// is sent is the View.
func (s *State) Messages() []ninelives.Message { return slices.Clip(s.messages) }

// View is what the model is sent of the history.
func (s *State) View() []ninelives.Message { return slices.Clip(s.view) }

// Turns are the turns, oldest first.
func (s *State) Turns() []Turn { return slices.Clip(s.turns) }

// Waiting are the inputs that no turn has taken up yet, in the order of acceptance.
func (s *State) Waiting() []Input { return slices.Clip(s.waiting) }

// Opening is how the session was opened.
func (s *State) Opening() Opening { return s.opening }

// Mode is the permission mode; empty until one was chosen.
func (s *State) Mode() tool.Mode { return s.mode }

// Rules are what the user has answered with "always" in this session.
func (s *State) Rules() []tool.Rule { return slices.Clip(s.rules) }

// Usage and Cost (US dollars) are those of the session, in totals.
func (s *State) Usage() (u ninelives.Usage, cost float64) { return s.usage, s.cost }

// Todo is the list of tasks as the model last wrote it.
func (s *State) Todo() []tool.Task { return slices.Clip(s.todo) }

// Tally is what the guard has counted of the last turn until its last entry.
func (s *State) Tally() Tally { return s.tally(s.last).Clone() }

// clone is a copy that later entries do not change. Slices that only grow are
// shared: what is added to them lies beyond the copy's end.
func (s *State) clone() *State {
	c := *s
	c.turns = slices.Clone(s.turns)
	c.run.calls = slices.Clone(s.run.calls)
	c.run.tally = s.run.tally.fork()
	c.ids = nil // the driver's alone
	return &c
}

// open reports that the last turn has begun and not ended.
func (s *State) open() bool { return len(s.turns) > 0 && s.turn().End == nil }

// turn is the last turn.
func (s *State) turn() *Turn { return &s.turns[len(s.turns)-1] }

// tally is what the guard looks at, at that time.
func (s *State) tally(at time.Time) *Tally {
	t := s.run.tally
	t.Elapsed = s.run.before
	if s.open() {
		t.Elapsed += max(0, at.Sub(s.run.began)-s.run.idle)
	}
	return &t
}

// context is what compaction looks at.
func (s *State) context() Context {
	return Context{Messages: s.view, Through: s.through, Overhead: s.overhead, Window: s.window, Reserve: s.reserve, Strikes: s.strikes}
}

// pressure is how full the window is. The view's tokens are counted as it grows,
// so that this costs the same however long it is.
func (s *State) pressure() (share float64, level Level) {
	x := s.context()
	x.Messages, x.Through = nil, nil
	x.Overhead += s.tokens
	return s.run.start.Settings.Compaction.Pressure(x)
}

// add takes one entry up. It fails for nothing: an entry that does not fit,
// because the one before it was damaged, changes as little as it can.
func (s *State) add(at time.Time, e Entry) {
	before := s.last
	s.last = at
	switch e := e.(type) {
	case Opening:
		s.opening = e
	case Input:
		s.accepted = max(s.accepted, e.Number)
		s.waiting = append(slices.Clip(s.waiting), e)
		s.run.told = s.run.told || e.Note
	case ModelChange:
		s.model, s.signature, s.strikes, s.learnt = e.Model, e.Signature, 0, 0
	case ModeChange:
		s.mode = e.Mode
	case Compaction:
		s.compact(e)
	case Undo:
		s.undo(e)
	case Rewind:
		s.rewind(e.Turn)
	case Archive:
		s.archived = max(s.archived, e.Through+1)
	case Permission:
		if e.Rule != nil {
			s.rules = append(slices.Clip(s.rules), *e.Rule)
		}
		s.run.denied = s.run.denied || e.Answer == ReplyStop
		s.run.idle += e.Waited
	case Start:
		s.start(at, before, e)
	case Healing:
		for _, n := range e.Notices {
			if n.Fault != nil && n.Fault.Window > 0 {
				s.learnt = n.Fault.Window
			}
		}
	default:
		if len(s.turns) > 0 {
			s.addToTurn(at, e)
		}
	}
}

// addToTurn takes up what belongs to the last turn.
func (s *State) addToTurn(at time.Time, e Entry) {
	t, r := s.turn(), &s.run
	switch e := e.(type) {
	case Answer:
		s.answer(e)
	case Failure:
		r.failed, r.told, r.compacted = &e, false, false
		s.spend(e.Usage, e.Cost, e.Events)
		if e.Cut {
			r.cuts++
		}
		if e.Fault != nil && e.Fault.Class == ninelives.ClassContextLength {
			r.overflows++
			if n := e.Fault.Window; n > 0 {
				s.learnt = n
				s.window = min(s.window, n)
			}
		}
	case Intent:
		for i := range r.calls {
			if c := &r.calls[i]; c.ID == e.Call && c.effect == nil {
				if !c.counted {
					r.tally.Begin(e.Name, e.Files, at)
					t.Calls++
					c.counted = true
				}
				c.intent = &e
			}
		}
	case Settled:
		for i := range r.calls {
			if c := &r.calls[i]; c.ID == e.Call {
				c.intent = nil
			}
		}
	case Effect:
		s.effect(e)
	case Ruled:
		if e.Stop {
			r.ruled = &e
		} else {
			r.noticed = r.effects
			r.lastWord = r.lastWord || e.Limit == LimitIterations
		}
	case Stopped:
		r.stopped = &e
	case Grant:
		r.tally.Grant(e.Limit)
		r.ruled, r.noticed = nil, 0
		if e.Limit == LimitIterations {
			r.steps, r.lastWord, r.capped = 0, false, false
		}
	case End:
		r.before += max(0, at.Sub(r.began)-r.idle)
		if r.stopped != nil && r.stopped.Hook == "" {
			s.take(func(in Input) bool { return in.Number <= r.stopped.Through })
		}
		t.End = &e
	}
}

// start begins a turn, or goes on with the last one; before is when the entry
// before it was recorded.
func (s *State) start(at, before time.Time, e Start) {
	s.window, s.overhead, s.reserve, s.model, s.signature = e.Window, e.Overhead, e.Reserve, e.Model, e.Signature
	if e.Mode != "" {
		s.mode = e.Mode
	}
	if n := len(s.turns); e.Resumes && n > 0 {
		s.turns = slices.Clone(s.turns)
		old := s.run
		if s.turn().End == nil { // its process died
			old.before += max(0, before.Sub(old.began)-old.idle)
		}
		s.turn().End = nil
		own := s.spent()
		s.run = run{
			start: e, began: at, before: old.before, tally: old.tally,
			steps: old.steps, calls: old.calls, answer: old.answer,
			effects: old.effects, noticed: old.noticed, lastWord: old.lastWord, capped: old.capped,
		}
		s.base(e.Shared, own)
	} else {
		s.missResults()
		s.turns = append(s.turns, Turn{Number: e.Turn, First: len(s.messages), Began: at})
		s.run = run{start: e, began: at}
		s.base(e.Shared, Spent{})
	}
	t := s.turn()
	t.Model = e.Model
	// What the program has to say of the turns before comes before what the user says now.
	s.take(func(in Input) bool { return in.Note && slices.Contains(e.Inputs, in.Number) })
	for _, in := range s.take(func(in Input) bool { return slices.Contains(e.Inputs, in.Number) }) {
		if t.Text == "" {
			t.Text = in.Message.Text()
		}
	}
}

// base lets a subagent's turn count on from what its parent has counted; own is
// what it has used itself by then.
func (s *State) base(shared *Tally, own Spent) {
	if shared == nil {
		return
	}
	t := shared.Clone()
	t.take(&own)
	t.Recent, t.Step, t.Denied = s.run.tally.Recent, s.run.tally.Step, s.run.tally.Denied
	s.run.tally, s.run.before, s.shared = t, max(s.run.before, t.Elapsed), shared
}

// answer takes up what the model said, and the inputs that it had read.
func (s *State) answer(e Answer) {
	t, r := s.turn(), &s.run
	s.take(func(in Input) bool { return slices.Contains(e.Inputs, in.Number) })
	s.say(e.Message)
	r.answer, r.failed, r.compacted = &e, nil, false
	r.cuts, r.overflows = 0, 0
	if e.Purpose == PurposeFinal {
		r.capped = true
	}
	r.steps++
	t.Steps++
	s.spend(e.Usage, e.Cost, e.Events)
	r.calls = nil
	for _, c := range e.Message.ToolCalls() {
		r.calls = append(r.calls, pendingCall{ToolCall: c})
		if s.ids == nil {
			s.ids = map[string]struct{}{}
		}
		s.ids[c.ID] = struct{}{}
	}
}

// effect takes up the result of a call. When all calls of an answer have
// theirs, they become one message, in the order of the calls.
func (s *State) effect(e Effect) {
	t, r := s.turn(), &s.run
	i := slices.IndexFunc(r.calls, func(c pendingCall) bool { return c.ID == e.Call && c.effect == nil })
	if i < 0 {
		return
	}
	c := &r.calls[i]
	c.effect = &e
	r.effects++
	t.Changes = append(t.Changes, e.Changes...)
	if e.Unknown && !e.Ran || e.Found && len(e.Changes) == 0 {
		t.Unknown = append(t.Unknown, c.Name)
	}
	if e.Spent != nil {
		s.spend(e.Spent.Usage, e.Spent.Cost, e.Spent.Events)
		r.tally.take(&Spent{Calls: e.Spent.Calls, PerTool: e.Spent.PerTool, PerFile: e.Spent.PerFile})
		t.Calls += e.Spent.Calls
	}
	if c.Name == "todo" && !e.Result.IsError {
		if tasks, err := tool.Tasks([]byte(c.Arguments)); err == nil {
			s.todo = tasks
		}
	}
	step := 0
	if r.answer != nil {
		step = r.answer.Step
	}
	r.tally.Finish(Trace{
		Step:    step,
		Name:    c.Name,
		Call:    hash(canonical(c.Arguments)),
		Result:  hash([]byte(e.Result.Text())),
		Changed: len(e.Changes) > 0,
		Polls:   e.Polls,
	}, e.Denied)
	results := ninelives.Message{Role: ninelives.RoleTool}
	for _, c := range r.calls {
		if c.effect == nil {
			return
		}
		results.Parts = append(results.Parts, c.effect.Result)
	}
	s.say(results)
}

// unanswered are the calls of the last answer that have no result yet.
func (s *State) unanswered() (calls []pendingCall) {
	for _, c := range s.run.calls {
		if c.effect == nil {
			calls = append(calls, c)
		}
	}
	return calls
}

// take makes the waiting inputs that are chosen part of the history.
func (s *State) take(chosen func(Input) bool) (taken []Input) {
	var left []Input
	for _, in := range s.waiting {
		if chosen(in) {
			taken = append(taken, in)
			s.say(in.Message)
		} else {
			left = append(left, in)
		}
	}
	if len(taken) > 0 {
		s.waiting = left
	}
	return taken
}

// missResults gives the open calls a result where something follows them: their
// own was recorded, else nothing would, and the record is damaged.
func (s *State) missResults() {
	for _, c := range s.unanswered() {
		s.effect(Effect{Call: c.ID, Name: c.Name, Unknown: true, Result: result(c.ToolCall, tool.ErrorResult(lostResult))})
	}
}

// say adds a message to the history and to the view.
func (s *State) say(m ninelives.Message) {
	if m.Role != ninelives.RoleTool {
		s.missResults()
	}
	s.messages = append(s.messages, m)
	s.view = append(s.view, m)
	s.through = append(s.through, len(s.messages)-1)
	s.tokens += Estimate(m)
}

func (s *State) spend(u ninelives.Usage, cost float64, events int) {
	t, r := s.turn(), &s.run
	t.Usage, s.usage = total(t.Usage, u), total(s.usage, u)
	t.Cost += cost
	s.cost += cost
	t.Events += events
	r.tally.Events += events
	r.tally.Cost += cost
}

// compact takes up a shorter view.
func (s *State) compact(e Compaction) {
	s.cost += e.Cost
	if len(s.turns) > 0 && s.open() {
		s.run.compacted, s.run.stuck = true, e.After >= e.Before
		s.run.tally.Cost += e.Cost
		s.turn().Cost += e.Cost
	}
	if e.Strike {
		s.strikes++
	} else if e.Tier == 2 || e.Tier == 3 {
		s.strikes = 0 // a summary was taken: what is done without a model proves nothing
	}
	before := s.compactions
	for n := len(before); n > 0 && s.supersedes(e, before[n-1]); n-- {
		before = before[:n-1]
	}
	s.compactions = append(slices.Clip(before), compacted{e, len(s.messages)})
	s.view, s.through = e.Apply(s.view, s.through)
	s.tokens = Estimate(s.view...)
	s.views++
}

// supersedes reports that an earlier compaction is not needed once e is there:
// e replaces all that it did, and where a turn is forgotten both are, for no
// turn has begun between them.
func (s *State) supersedes(e Compaction, earlier compacted) bool {
	return len(e.View) > 0 && e.Through >= max(earlier.Through, earlier.Strip) &&
		len(s.turns) > 0 && earlier.at > s.turn().First
}

// rewind makes the view forget the turns from a number on: it is built again
// from what came before, with the compactions that knew of nothing later.
func (s *State) rewind(turn int) {
	first := -1
	s.turns = slices.Clone(s.turns)
	for i := range s.turns {
		if s.turns[i].Number >= turn && !s.turns[i].Rewound {
			if first < 0 {
				first = s.turns[i].First
			}
			s.turns[i].Rewound = true
		}
	}
	if first < 0 {
		return
	}
	s.compactions = slices.DeleteFunc(slices.Clone(s.compactions), func(c compacted) bool { return c.at > first })
	var view []ninelives.Message
	var through []int
	said := 0
	until := func(end int) {
		for ; said < end; said++ {
			if !s.forgotten(said) {
				view, through = append(view, s.messages[said]), append(through, said)
			}
		}
	}
	for _, c := range s.compactions {
		until(c.at)
		view, through = c.Apply(view, through)
	}
	until(len(s.messages))
	s.view, s.through, s.tokens = view, through, Estimate(view...)
	s.views++
	s.run = run{}
}

// forgotten reports that the message belongs to a turn that was rewound.
func (s *State) forgotten(index int) bool {
	// The last turn that begins at it or before; turns without a message share
	// their beginning with the next one.
	next, _ := slices.BinarySearchFunc(s.turns, index+1, func(t Turn, first int) int { return t.First - first })
	return next > 0 && s.turns[next-1].Rewound
}

// undo notes whose file changes are taken back.
func (s *State) undo(e Undo) {
	s.turns = slices.Clone(s.turns)
	for i := range s.turns {
		if s.turns[i].Number == e.Turn {
			s.turns[i].Undone = !e.Redo
		}
	}
	s.undone = slices.DeleteFunc(slices.Clone(s.undone), func(n int) bool { return n == e.Turn })
	if !e.Redo {
		s.undone = append(s.undone, e.Turn)
	}
}

// total adds usages up, whatever their counts include: the sum has totals.
func total(sum, u ninelives.Usage) ninelives.Usage {
	return ninelives.Usage{
		Input:      sum.Input + u.TotalInput(),
		Output:     sum.Output + u.TotalOutput(),
		Reasoning:  sum.Reasoning + u.Reasoning,
		Cached:     sum.Cached + u.Cached,
		CacheWrite: sum.CacheWrite + u.CacheWrite,
		Reported:   sum.Reported | u.Reported,
		Estimated:  sum.Estimated || u.Estimated,
	}
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// names are the keys of a map, sorted.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
