package agent

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ninelives-ai/ninelives/journal"
)

// Replayed is one decision of a recorded turn, made again.
type Replayed struct {
	// Seq is the number of the entry that records what was done, At its time.
	Seq  int64
	At   time.Time
	Turn int
	// Recorded is what was done then, Decided what the decider says now.
	Recorded string
	Decided  string
	Agrees   bool
	// Gap: entries before it are lost, so that it may have been decided by what
	// is not known any more.
	Gap bool
}

// Replay asks the decider again at every point of a session's record, offline,
// and compares what it says with what was done. An error names the first entry
// that cannot be read; those before it have been replayed.
//
// What comes from outside (what the user says meanwhile, what hooks and people
// decide) is taken as it was recorded.
func Replay(entries []journal.Entry) (list []Replayed, err error) {
	s := &State{}
	var print fingerprint
	// What the driver may have been told: it asked before or after whatever
	// came from outside between two entries of its own.
	var said []Action
	last, gap := int64(0), false
	for _, e := range entries {
		entry, err := Decode(e)
		if err != nil {
			return list, err
		}
		if e.Seq > last+1 {
			s.lose()
			gap = true
			said = append(said[:0], decide(s, s.last))
		}
		last = e.Seq
		if r, decided := replayed(s, entry, said); decided {
			if a, ok := entry.(Answer); ok && r.Agrees && a.Request != "" && a.Request != s.printed(&print, a.Inputs) {
				r.Agrees, r.Decided = false, r.Decided+", but of other messages"
			}
			r.Seq, r.At, r.Turn, r.Gap = e.Seq, e.At, s.turn().Number, gap
			list = append(list, r)
		}
		outside := false
		switch entry := entry.(type) {
		case Input:
			outside = !entry.Note
		case ModeChange:
			outside = true
		}
		s.add(e.At, entry)
		if !outside {
			said = said[:0]
		}
		said = append(said, decide(s, s.last))
	}
	return list, nil
}

// printed is the hash of the request that takes up these inputs.
func (s *State) printed(f *fingerprint, inputs []int) string {
	sum := f.of(s, s.run.start.System)
	for _, in := range s.waiting {
		if slices.Contains(inputs, in.Number) {
			sum = chain(sum, in.Message)
		}
	}
	return hex.EncodeToString(sum[:16])
}

// replayed compares an entry with what the decider may have said before it.
// Entries that follow from no decision are left out.
func replayed(s *State, e Entry, said []Action) (Replayed, bool) {
	if !s.open() {
		return Replayed{}, false
	}
	var was Action
	agrees := func(a Action) bool { return a.Do == was.Do }
	switch e := e.(type) {
	case Answer:
		was = Action{Do: DoAsk, Purpose: e.Purpose, Inputs: e.Inputs}
		agrees = func(a Action) bool {
			return a.Do == DoAsk && a.Purpose == was.Purpose && slices.Equal(a.Inputs, was.Inputs)
		}
	case Failure:
		was = Action{Do: DoAsk, Purpose: e.Purpose}
		agrees = func(a Action) bool { return a.Do == DoAsk && a.Purpose == was.Purpose }
	case Intent:
		was = Action{Do: DoRun, Calls: []string{e.Call}}
		agrees = func(a Action) bool {
			return (a.Do == DoRun || a.Do == DoSettle) && slices.Contains(a.Calls, e.Call)
		}
		if s.beside(e.Call) {
			return Replayed{}, false // the batch was decided with its first call
		}
	case Settled:
		was = Action{Do: DoSettle, Calls: []string{e.Call}}
		agrees = func(a Action) bool { return a.Do == DoSettle && slices.Contains(a.Calls, e.Call) }
	case Effect:
		c, ok := s.pending(e.Call)
		if !ok || c.intent != nil || s.cutOff() {
			return Replayed{}, false // what its intent was decided for
		}
		was = Action{Do: DoRun, Calls: []string{e.Call}}
		agrees = func(a Action) bool {
			return (a.Do == DoRun || a.Do == DoEnd) && slices.Contains(a.Calls, e.Call)
		}
	case Compaction:
		if e.Why == WhyAsked {
			return Replayed{}, false
		}
		was = Action{Do: DoCompact, Why: e.Why}
		agrees = func(a Action) bool { return a.Do == DoCompact && a.Why == e.Why }
	case Ruled:
		if e.Stop || e.Limit != LimitLoop && e.Limit != LimitIterations {
			return Replayed{}, false
		}
		was = Action{Do: DoTell, Limit: e.Limit}
		agrees = func(a Action) bool { return a.Do == DoTell && a.Limit == e.Limit }
	case End:
		if e.Reason == ReasonInterrupted {
			return Replayed{}, false
		}
		was = Action{Do: DoEnd, End: e}
		agrees = func(a Action) bool { return a.Do == DoEnd && a.End.Reason == e.Reason && a.End.Limit == e.Limit }
	default:
		return Replayed{}, false
	}
	r := Replayed{Recorded: was.String()}
	for _, a := range said {
		r.Decided = a.String()
		if agrees(a) {
			r.Agrees = true
			break
		}
	}
	return r, true
}

// cutOff reports that a call has begun and has no result.
func (s *State) cutOff() bool {
	return slices.ContainsFunc(s.run.calls, func(c pendingCall) bool { return c.intent != nil && c.effect == nil })
}

// beside reports that another call than this one has begun and has no result.
func (s *State) beside(call string) bool {
	return slices.ContainsFunc(s.run.calls, func(c pendingCall) bool { return c.ID != call && c.intent != nil && c.effect == nil })
}

// String says an action in a line.
func (a Action) String() string {
	switch a.Do {
	case DoAsk:
		return fmt.Sprintf("ask (%s)", a.Purpose)
	case DoRun, DoSettle:
		return fmt.Sprintf("%s %s", a.Do, strings.Join(a.Calls, ", "))
	case DoCompact:
		return "compact (" + a.Why + ")"
	case DoTell:
		return strings.TrimSpace("tell " + a.Limit)
	case DoEnd:
		text := fmt.Sprintf("end (%s", a.End.Reason)
		if a.End.Limit != "" {
			text += ", " + a.End.Limit
		}
		return text + ")"
	}
	return "nothing"
}
