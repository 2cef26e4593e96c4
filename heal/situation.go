package heal

import (
	"fmt"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// String writes the situation for a human, with all that a decision is made
// from, so that the decision can be made again from what is written. Times are
// told from now on; what is as usual is left out.
func (s Situation) String() string {
	var b strings.Builder
	for _, r := range s.rows() {
		b.WriteString(strings.Join(r, ", "))
		b.WriteByte('\n')
	}
	return b.String()
}

// row gathers what is worth saying into one line.
type row []string

func (r *row) say(worth bool, format string, args ...any) {
	if worth {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}

func (s *Situation) rows() []row {
	var now row
	now.say(true, "at %s", s.Now.Format(time.RFC3339Nano))
	now.say(!s.Deadline.IsZero(), "deadline %s", s.from(s.Deadline))
	now.say(s.Mode != "", "mode %s", s.Mode)
	now.say(s.Degraded, "a substitute is at hand")
	now.say(true, "draw %v", s.Draw)
	now.say(true, "lot %v", s.Lot)
	rows := []row{now, s.Facts.row()}
	for i := range s.Candidates {
		rows = append(rows, s.candidate(i))
	}
	for i := range s.Attempts {
		rows = append(rows, s.attempt(&s.Attempts[i]))
	}
	return rows
}

func (f *Facts) row() (r row) {
	r.say(true, "request of %d tokens", f.Input)
	r.say(f.MaxTokens > 0, "at most %d back", f.MaxTokens)
	r.say(f.N > 1, "%d choices", f.N)
	r.say(f.Tools, "tools")
	r.say(f.Images, "images")
	r.say(f.Output, "output")
	r.say(f.Default, "default")
	r.say(f.Buffered, "buffered")
	r.say(f.Background, "background")
	r.say(f.CanFit, "can be made to fit")
	return r
}

func (s *Situation) candidate(i int) (r row) {
	c := &s.Candidates[i]
	st := &c.Standing
	r.say(true, "candidate %d %s %s", i, c.Candidate.Name(), st.State)
	r.say(!st.Until.IsZero(), "until %s", s.from(st.Until))
	r.say(st.Class != "", "%s", st.Class)
	r.say(st.Scope != "", "the %s", st.Scope)
	r.say(st.Probe != "", "probe %s", st.Probe)
	r.say(!st.ProbeAt.IsZero(), "from %s", s.from(st.ProbeAt))
	r.say(st.Full, "full")
	r.say(st.Share != 1, "share %v", st.Share)
	r.say(c.NoRetry, "no retry")
	r.say(c.Unfit, "unfit")
	r.say(c.OnRefusal, "on refusal")
	r.say(c.Candidate.Window > 0, "window %d (%s)", c.Candidate.Window, c.Candidate.WindowSource)
	r.say(c.Candidate.MaxOutput > 0, "answers of %d", c.Candidate.MaxOutput)
	r.say(!c.Candidate.Tools, "no tools")
	r.say(!c.Candidate.Images, "no images")
	r.say(c.Candidate.Local, "local")
	r.say(c.Candidate.LocalModel, "local model")
	r.say(c.Candidate.Price != ninelives.Price{}, "price %v in %v out", c.Candidate.Price.Input, c.Candidate.Price.Output)
	r.repairs(c.Repairs)
	return r
}

func (s *Situation) attempt(a *Attempt) (r row) {
	r.say(true, "attempt %d at %d %s", a.Number, a.Candidate, a.Outcome)
	if f := a.Fault; f != nil {
		r.say(true, "%s", f.Class)
		r.say(f.Phase != "", "in %s", f.Phase)
		r.say(f.Status != 0, "HTTP %d", f.Status)
		r.say(f.Code != "", "code %s", f.Code)
		r.say(f.RetryAfter > 0, "hint %s", f.RetryAfter)
		r.say(!f.ResetAt.IsZero(), "reset %s", s.from(f.ResetAt))
		r.say(f.ShouldRetry != nil, "should retry: %v", f.ShouldRetry != nil && *f.ShouldRetry)
		r.say(f.Final, "final")
		r.say(f.Window > 0, "window %d", f.Window)
		r.say(f.Requested > 0, "requested %d", f.Requested)
		r.repairs(f.Repairs)
	}
	r.say(a.Change.Prompt != "", "prompt %s", a.Change.Prompt)
	r.say(a.Change.NoTools, "without tools")
	r.say(a.Released, "released")
	r.say(a.Continuable, "continuable")
	r.say(a.Acceptable, "acceptable")
	r.say(a.Probe, "probe")
	r.say(a.LeastBad, "least bad")
	r.say(a.Returned, "waited for")
	r.say(a.Lost, "lost")
	r.say(a.Unsent, "unsent")
	r.say(!a.Began.IsZero(), "began %s", s.from(a.Began))
	r.say(!a.Ended.IsZero(), "ended %s", s.from(a.Ended))
	r.say(a.Usage.TotalInput() > 0, "%d tokens in", a.Usage.TotalInput())
	r.say(a.Usage.TotalOutput() > 0, "%d tokens out", a.Usage.TotalOutput())
	return r
}

func (r *row) repairs(list []ninelives.Repair) {
	for _, repair := range list {
		r.say(true, "repair %s", repair)
	}
}

// from tells a time from now on: "+2s", "-1.5s".
func (s *Situation) from(t time.Time) string {
	if d := t.Sub(s.Now); d < 0 {
		return d.String()
	} else {
		return "+" + d.String()
	}
}
