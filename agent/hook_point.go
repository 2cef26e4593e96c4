package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ninelives-ai/ninelives/internal/nearest"
)

// HookPoint is a node of the loop by the name that it has in a configuration.
type HookPoint string

// The nodes at which a command can be run; each is the function of [Hook] of
// the same name.
const (
	PointSessionStart     HookPoint = "session_start"
	PointSessionEnd       HookPoint = "session_end"
	PointTurnStart        HookPoint = "turn_start"
	PointTurnEnd          HookPoint = "turn_end"
	PointBeforeIteration  HookPoint = "before_iteration"
	PointAfterIteration   HookPoint = "after_iteration"
	PointBeforeModel      HookPoint = "before_model"
	PointAfterModel       HookPoint = "after_model"
	PointBeforeTool       HookPoint = "before_tool"
	PointAfterTool        HookPoint = "after_tool"
	PointBeforeCompaction HookPoint = "before_compaction"
	PointAfterCompaction  HookPoint = "after_compaction"
)

// HookPoints lists the nodes in the order of a session.
func HookPoints() []HookPoint {
	return []HookPoint{
		PointSessionStart, PointTurnStart, PointBeforeIteration, PointBeforeModel, PointAfterModel,
		PointBeforeTool, PointAfterTool, PointAfterIteration, PointBeforeCompaction, PointAfterCompaction,
		PointTurnEnd, PointSessionEnd,
	}
}

// CommandHook is a command that is run at a node of the loop. Package
// agent/hookcmd carries it out.
type CommandHook struct {
	On HookPoint
	// Match are the names of the tools that it is run for, separated by "|", with
	// * for any characters; empty means every tool. Only for before_tool and
	// after_tool.
	Match string
	// Run is the command and its arguments; no shell reads them.
	Run []string
	// Timeout is how long it may take; zero means 60 s.
	Timeout time.Duration
}

// Check reports what is wrong with c in a line.
func (c CommandHook) Check() error {
	points := HookPoints()
	switch {
	case c.On == "":
		return errors.New("a hook needs a node: on: before_tool")
	case !slices.Contains(points, c.On):
		names := make([]string, len(points))
		for i, p := range points {
			names[i] = string(p)
		}
		return fmt.Errorf("there is no node %q%s: use one of %s", c.On, nearest.Hint(string(c.On), names), strings.Join(names, ", "))
	case c.Match != "" && c.On != PointBeforeTool && c.On != PointAfterTool:
		return fmt.Errorf("match is for before_tool and after_tool, not for %s", c.On)
	case len(c.Run) == 0 || c.Run[0] == "":
		return errors.New(`a hook needs a command: run: ["name", "argument"]`)
	case c.Timeout < 0:
		return errors.New("a timeout below zero")
	}
	return nil
}

// Matches reports that c is for the tool of this name.
func (c CommandHook) Matches(name string) bool {
	if strings.TrimSpace(c.Match) == "" {
		return true
	}
	for pattern := range strings.SplitSeq(c.Match, "|") {
		if like(strings.TrimSpace(pattern), name) {
			return true
		}
	}
	return false
}

// like matches a name against a pattern in which * stands for any characters.
func like(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for {
		piece, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, piece)
		}
		i := strings.Index(name, piece)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(piece):], more
	}
}

type whoseKey struct{}

type whose struct {
	session string
	turn    int
}

// For marks what is done with ctx as done for a turn of a session. A session
// marks the contexts of its turns itself, before any hook sees them.
func For(ctx context.Context, session string, turn int) context.Context {
	return context.WithValue(ctx, whoseKey{}, whose{session, turn})
}

// Whose says for which session and turn a hook, a tool or a model is called;
// the zero values if for none.
func Whose(ctx context.Context) (session string, turn int) {
	w, _ := ctx.Value(whoseKey{}).(whose)
	return w.session, w.turn
}
