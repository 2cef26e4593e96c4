package agent

import (
	"os"
	"runtime"
	"strings"
	"time"
)

// prompt is the briefing of a turn: what the model is here for, where it is,
// and what the user and the project want every model to know. It is the same
// for every request of the turn, and changes between turns only where its
// sources do, so that a provider's cache holds.
func prompt(dir string, set Settings) (text string, warnings []string) {
	parts := []string{briefing, surroundings(dir, time.Now())}
	home, _ := os.UserHomeDir()
	read, _, err := Instructions(dir, home, set.Memory)
	if err != nil {
		warnings = append(warnings, "the project's instructions could not be read whole: "+oneLine(err.Error()))
	}
	for _, more := range []string{read, set.Instructions} {
		if more = strings.TrimSpace(more); more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, "\n\n"), warnings
}

const briefing = `You are a coding assistant at work in the user's project. You see and change it through the tools alone.

- Look before you change: read what you are about to edit, and find out how the project does things.
- Do what was asked, whole, and nothing else. Keep to the project's style.
- Check what you did where you can: build it, run its tests.
- Say what is true. If something failed, was not done or is unknown, say so; never report a result that no tool has given.
- A result that begins with "Error: " is a failure: read it, and change what you do. A call that was denied is not to be tried again in another form.
- Calls that only read may be made together; make changes one after the other.
- When all is done, answer in a few lines: what you changed, and what is left.`

// surroundings are the facts about the machine that a model needs. The date is
// that of the day, so that turns of one day share their prefix.
func surroundings(dir string, at time.Time) string {
	var b strings.Builder
	b.WriteString("Working directory: " + oneLine(dir))
	b.WriteString("\nSystem: " + runtime.GOOS + "/" + runtime.GOARCH)
	b.WriteString("\nDate: " + at.Format(time.DateOnly))
	return b.String()
}
