package heal

import (
	"context"
	"fmt"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Exhausted is the error of a call that could not be helped: everything that
// the policy allows was tried. It keeps the request, so that nothing of the
// caller's input is lost, and the trail of what was tried.
//
// errors.As finds the last *Fault in it, and errors.Is finds
// context.DeadlineExceeded when the deadline ended the call.
type Exhausted struct {
	// Request is the caller's request, unchanged: it can be sent again.
	Request *ninelives.Request
	// Trail lists the attempts in the order in which they ended.
	Trail []Tried
	// Fault is the last failure; nil if nothing could be asked.
	Fault *ninelives.Fault
	// Why says why no further attempt was made.
	Why string
	// Took is how long the call took.
	Took time.Duration
	// Back is when the first candidate may answer again; zero if unknown.
	Back time.Time
	// Deadline says that the call ran out of time.
	Deadline bool
	// cause is why the caller's context says that its time was up, if it does.
	cause error
}

// Tried is one attempt of an exhausted call.
type Tried struct {
	Candidate string
	Class     ninelives.Class
	Outcome   ninelives.Outcome
	Status    int
	Took      time.Duration
	Fault     *ninelives.Fault
}

// Error is one line: it begins with AllFailed, lists the attempts, and says
// what to do.
func (e *Exhausted) Error() string {
	var b strings.Builder
	b.WriteString(AllFailed)
	switch n := len(e.Trail); n {
	case 0:
	case 1:
		fmt.Fprintf(&b, " Tried once in %s: ", short(e.Took))
	default:
		fmt.Fprintf(&b, " Tried %d times in %s: ", n, short(e.Took))
	}
	for i, t := range e.Trail {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %s", t.Candidate, t.Class)
		if t.Status != 0 {
			fmt.Fprintf(&b, " (HTTP %d)", t.Status)
		}
		fmt.Fprintf(&b, " after %s", short(t.Took))
	}
	if len(e.Trail) > 0 {
		b.WriteByte('.')
	}
	if e.Fault != nil {
		message := strings.TrimSuffix(e.Fault.Message, ".")
		if message == "" && e.Fault.Err != nil {
			message = e.Fault.Err.Error()
		}
		if message != "" {
			fmt.Fprintf(&b, " Last: %s.", oneLine(message, 300))
		}
	}
	if e.Why != "" {
		fmt.Fprintf(&b, " Ended because %s.", e.Why)
	}
	b.WriteString(" " + e.Advice())
	return b.String()
}

// Advice says what the user can do.
func (e *Exhausted) Advice() string {
	switch {
	case e.Fault != nil && e.Fault.Hint != "":
		return sentence(e.Fault.Hint)
	case e.Deadline:
		return "Try again, allow more time, or add a faster fallback."
	}
	class := ninelives.ClassUnknown
	if e.Fault != nil {
		class = e.Fault.Class
	}
	switch class {
	case ninelives.ClassBilling:
		return "Add credit or raise the spend limit at the provider, or add a fallback."
	case ninelives.ClassAuth:
		return "Check the API key and its rights."
	case ninelives.ClassModelNotFound:
		return "Check the model's name and the base URL."
	case ninelives.ClassNetwork:
		return "Check the network connection and the base URL."
	}
	if !e.Back.IsZero() {
		whole := e.Back.Add(time.Second - 1).Truncate(time.Second)
		return "Try again after " + whole.Format(time.RFC3339) + ", or add a fallback."
	}
	return "Try again later, or add a fallback."
}

// Unwrap gives the last fault and, where it ended the call, the deadline with
// the cause that the caller's context has for it.
func (e *Exhausted) Unwrap() []error {
	var errs []error
	if e.Fault != nil {
		errs = append(errs, e.Fault)
	}
	if e.Deadline {
		errs = append(errs, context.DeadlineExceeded)
	}
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	return errs
}

// exhausted makes the error of this call.
func (c *call) exhausted(d Decision) *Exhausted {
	e := &Exhausted{Request: c.req, Fault: d.Fault, Why: d.Why, Took: time.Since(c.began), Back: d.Back, Deadline: c.overdue()}
	if c.parent.Err() != nil {
		e.cause = context.Cause(c.parent)
	}
	for i := range c.s.Attempts {
		a := &c.s.Attempts[i]
		if a.Lost {
			continue
		}
		t := Tried{Candidate: c.links[a.Candidate].name, Outcome: a.Outcome, Took: a.Ended.Sub(a.Began), Fault: a.Fault}
		if a.Fault != nil {
			t.Class, t.Status = a.Fault.Class, a.Fault.Status
		}
		e.Trail = append(e.Trail, t)
	}
	return e
}

// sentence makes a hint a sentence.
func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if strings.ContainsAny(s[len(s)-1:], ".?!") {
		return s
	}
	return s + "."
}
