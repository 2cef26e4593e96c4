package heal

import (
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
)

// joint is where the events of a continuation meet those of the answer that it
// continues: its first text goes through the seam, and its parts are counted
// on from the answer's.
type joint struct {
	seam
	// part is the part that the seam keeps back a piece of.
	part int
	// last is the last part of the answer; text: it is text, which the
	// continuation's text joins.
	last int
	text bool
	// begun: the first part of the continuation has come; joins: it joins the
	// last one. left are those that are left out.
	begun, joins bool
	left         []int
}

// leave leaves a part out: the continuation's thinking.
func (j *joint) leave(part int) {
	if !slices.Contains(j.left, part) {
		j.left = append(j.left, part)
	}
}

// place maps a part of the continuation to one of the whole answer.
func (j *joint) place(part int, text bool) int {
	n := part
	for _, left := range j.left {
		if left < part {
			n--
		}
	}
	if !j.begun {
		j.begun, j.joins = true, text && n == 0 && j.text
	}
	if j.joins {
		return j.last + n
	}
	return j.last + n + 1
}

// through passes a piece of text through the seam and reports whether there
// is something to go on with.
func (t *take) through(d *ninelives.TextDelta) bool {
	d.Part = t.joint.place(d.Part, true)
	if t.joint.held != "" && t.joint.part != d.Part && !t.part() {
		return false
	}
	t.joint.part = d.Part
	d.Text, t.fault = t.joint.feed(d.Text)
	return d.Text != ""
}

// part ends the seam, because another part begins or nothing more comes: what
// is still kept back is the answer's. It reports whether more is wanted.
func (t *take) part() bool {
	if t.joint == nil || t.joint.open {
		return true
	}
	rest, fault := t.joint.rest()
	if t.fault = fault; fault != nil || rest == "" {
		return fault == nil
	}
	d := ninelives.TextDelta{Attempt: t.number, Part: t.joint.part, Text: rest}
	return t.text(d, d.Part, d.Text)
}
