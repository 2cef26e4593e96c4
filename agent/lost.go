package agent

import (
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// lose takes up that entries are missing at this place. A call that has no
// result here may have begun in them, and what may have begun is never begun
// again: it counts as one that was cut off, of which nothing was noted.
func (s *State) lose() {
	s.gaps++
	for i := range s.run.calls {
		if c := &s.run.calls[i]; c.effect == nil && c.intent == nil {
			c.intent = &Intent{Call: c.ID, Name: c.Name, Arguments: []byte(c.Arguments)}
		}
	}
}

// knows reports that the model was, or will be, told this.
func (s *State) knows(note string) bool {
	told := func(m ninelives.Message) bool {
		return m.Role == ninelives.RoleUser && strings.Contains(m.Text(), note)
	}
	for _, in := range s.waiting {
		if told(in.Message) {
			return true
		}
	}
	for _, m := range s.messages {
		if told(m) {
			return true
		}
	}
	return false
}

// gapsNote tells the model that it does not see everything.
func gapsNote(gaps int) string {
	where := "one place"
	if gaps > 1 {
		where = fmt.Sprintf("%d places", gaps)
	}
	return "The record of this session is damaged in " + where + ". What was said and done there is missing from what you see. Find out what is done already before you do anything again."
}
