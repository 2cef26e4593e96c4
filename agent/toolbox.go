package agent

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/jsonout"
	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/tool"
)

// toolbox is the tools of a turn by name, and what the model is told of them:
// sorted, so that the provider's cache holds.
type toolbox struct {
	byName map[string]*equipped
	list   []ninelives.Tool
}

// equipped is a tool with its schema read.
type equipped struct {
	tool.Tool
	spec    tool.Spec
	compile func() (*jsonout.Schema, error)
}

// toolbox gives the tools as they are now.
func (a *Agent) toolbox(t *turn) toolbox {
	box := toolbox{byName: map[string]*equipped{}}
	tools := slices.Clip(a.tools)
	for _, source := range a.sources {
		tools = append(tools, source()...)
	}
	add := func(t tool.Tool) {
		spec := t.Spec()
		if box.byName[spec.Name] != nil || spec.Name == "" {
			return
		}
		box.byName[spec.Name] = &equipped{Tool: t, spec: spec, compile: sync.OnceValues(func() (*jsonout.Schema, error) {
			if len(spec.Schema) == 0 {
				return nil, nil
			}
			return jsonout.Compile(spec.Schema)
		})}
	}
	for _, t := range tools {
		add(t)
	}
	if a.settings.Depth > 0 {
		for _, s := range a.subagents(t, box.byName) {
			add(s)
		}
	}
	for _, name := range names(box.byName) {
		box.list = append(box.list, box.byName[name].spec.Tool)
	}
	if n := len(box.list); n > 0 {
		box.list[n-1].Cache = &ninelives.CacheHint{}
	}
	return box
}

// find gives the tool of a call, or what the model is told if there is none.
func (b toolbox) find(name string) (*equipped, string) {
	if e := b.byName[name]; e != nil {
		return e, ""
	}
	known := names(b.byName)
	text := fmt.Sprintf("there is no tool %s%s.", plain(name), nearest.Hint(name, known))
	if len(known) == 0 {
		return nil, text + " No tools can be called here."
	}
	return nil, text + " The tools are: " + strings.Join(known, ", ") + "."
}

// check reads the arguments of a call and says what is wrong with them, for the
// model to put right.
func (e *equipped) check(arguments string) (args []byte, err error) {
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	if err := wellFormed(arguments); err != nil {
		return nil, fmt.Errorf("the arguments are no valid JSON (%s). Nothing was done; send them again whole", oneLine(err.Error()))
	}
	args = canonical(arguments)
	if kind := jsontext.Value(args).Kind(); kind != '{' {
		return nil, fmt.Errorf("the arguments must be a JSON object, and are of the kind %s. Nothing was done", kind)
	}
	schema, err := e.compile()
	if err != nil {
		return nil, fmt.Errorf("the tool's own schema cannot be used: %w", err)
	}
	if schema == nil {
		return args, nil
	}
	checked := jsonout.Check(string(args), schema)
	if len(checked.Problems) == 0 {
		return args, nil
	}
	problems := make([]string, len(checked.Problems))
	for i, p := range checked.Problems {
		problems[i] = p.String()
	}
	return nil, errors.New("the arguments do not fit the tool, and nothing was done: " + strings.Join(problems, "; "))
}

// canonical writes a JSON text in one way: members sorted, no blanks, numbers
// and strings as they were. What is no JSON stays as it is.
func canonical(text string) []byte {
	v := jsontext.Value(bytes.TrimSpace([]byte(text)))
	err := v.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawFloats(false), jsontext.CanonicalizeRawInts(false),
		jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return []byte(text)
	}
	return v
}

// needs asks the tool what a call would touch; a panic is an error for the model.
func (e *equipped) needs(args []byte) (needs []tool.Need, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the tool panicked before the call was made: %s", oneLine(fmt.Sprint(r)))
		}
	}()
	needs, err = e.Needs(slices.Clone(args))
	return needs, err
}
