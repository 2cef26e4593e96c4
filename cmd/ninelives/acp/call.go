package acp

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/internal/visible"
	"github.com/ninelives-ai/ninelives/tool"
)

// face is how a tool is shown: the words before what it is about, and which
// argument says that.
type face struct {
	kind     sdk.ToolKind
	word     string
	argument string
	without  string // if the argument is missing
}

var faces = map[string]face{
	"read_file":            {sdk.ToolKindRead, "Read ", "path", "a file"},
	"list_dir":             {sdk.ToolKindRead, "List ", "path", "the workspace"},
	"glob":                 {sdk.ToolKindSearch, "Find ", "pattern", "files"},
	"grep":                 {sdk.ToolKindSearch, "Search for ", "pattern", "text"},
	"write_file":           {sdk.ToolKindEdit, "Write ", "path", "a file"},
	"edit_file":            {sdk.ToolKindEdit, "Edit ", "path", "a file"},
	"delete_file":          {sdk.ToolKindDelete, "Delete ", "path", "a file"},
	"run_command":          {sdk.ToolKindExecute, "", "command", "run_command"},
	"run_terminal_command": {sdk.ToolKindExecute, "", "command", "run_terminal_command"},
	"web_fetch":            {sdk.ToolKindFetch, "Fetch ", "url", "a page"},
	"web_search":           {sdk.ToolKindFetch, "Search the web for ", "query", "something"},
	"todo":                 {sdk.ToolKindThink, "Update the list of tasks", "", ""},
	agent.SubagentTool:     {sdk.ToolKindThink, "Subagent: ", "task", "a task"},
	agent.ResearchTool:     {sdk.ToolKindThink, "Research: ", "task", "a question"},
}

// kinds are those of tools that have no face, by what they touch.
var kinds = map[tool.NeedKind]sdk.ToolKind{
	tool.NeedRead: sdk.ToolKindRead, tool.NeedWrite: sdk.ToolKindEdit, tool.NeedDelete: sdk.ToolKindDelete,
	tool.NeedExecute: sdk.ToolKindExecute, tool.NeedFetch: sdk.ToolKindFetch,
}

func kind(name string, needs []tool.Need) sdk.ToolKind {
	if f, ok := faces[name]; ok {
		return f.kind
	}
	for _, n := range needs {
		if k, ok := kinds[n.Kind]; ok {
			return k
		}
	}
	return sdk.ToolKindOther
}

// titleRunes is how long a title can be.
const titleRunes = 200

// title says in a line what a call does.
func title(name string, args []byte) string {
	f, ok := faces[name]
	if !ok {
		return shortened(name)
	}
	about := f.without
	if text := strings.TrimSpace(argument(args, f.argument)); text != "" {
		about = text
	} else if action := argument(args, "action"); action != "" { // of a terminal
		about = strings.TrimSpace("Terminal: " + action + " " + argument(args, "id"))
	}
	return shortened(f.word + about)
}

// argument is an argument that is text; empty if it is not there.
func argument(args []byte, name string) string {
	var all map[string]json.RawMessage
	var text string
	if name == "" || json.Unmarshal(args, &all) != nil || json.Unmarshal(all[name], &text) != nil {
		return ""
	}
	return text
}

// rawInput are the arguments as JSON; what is none is shown as text.
func rawInput(args []byte) any {
	var v any
	switch {
	case len(args) == 0:
		return nil
	case json.Unmarshal(args, &v) != nil:
		return string(args)
	}
	return v
}

// locations are the files that a call is about, and where in them.
func locations(dir string, args []byte, needs []tool.Need, diff string) (list []sdk.ToolCallLocation) {
	var paths []string
	for _, n := range needs {
		if n.Kind == tool.NeedRead || n.Kind == tool.NeedWrite || n.Kind == tool.NeedDelete {
			paths = append(paths, n.Target)
		}
	}
	if len(paths) == 0 {
		paths = append(paths, argument(args, "path"))
	}
	first := map[string]int{}
	hunks, _ := readDiff(diff)
	for _, h := range hunks {
		if first[h.path] == 0 {
			first[h.path] = h.line
		}
		paths = append(paths, h.path)
	}
	for _, p := range paths {
		if p == "" || slices.ContainsFunc(list, func(l sdk.ToolCallLocation) bool { return l.Path == absolute(dir, p) }) {
			continue
		}
		l := sdk.ToolCallLocation{Path: absolute(dir, p)}
		if line := first[p]; line > 0 {
			l.Line = &line
		} else if line := offset(args); line > 0 {
			l.Line = &line
		}
		list = append(list, l)
	}
	return list
}

// offset is the line that a call begins to read at; zero if it does not say.
func offset(args []byte) int {
	var a struct {
		Offset int `json:"offset"`
	}
	if json.Unmarshal(args, &a) != nil {
		return 0
	}
	return a.Offset
}

// absolute is a path of the workspace as editors want it.
func absolute(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func status(e agent.Effect) sdk.ToolCallStatus {
	if e.Result.IsError || e.Unknown || e.Denied {
		return sdk.ToolCallStatusFailed
	}
	return sdk.ToolCallStatusCompleted
}

// effectContent shows what came of a call: its diffs, else what the model reads.
func effectContent(e agent.Effect, dir string) []sdk.ToolCallContent {
	content := diffContent(e.Diff, dir)
	f := faces[e.Name]
	edits := f.kind == sdk.ToolKindEdit || f.kind == sdk.ToolKindDelete
	if len(content) > 0 && edits && !e.Result.IsError {
		return content
	}
	for _, p := range e.Result.Content {
		switch p := p.(type) {
		case ninelives.Text:
			if strings.TrimSpace(p.Text) != "" {
				content = append(content, fenced(p.Text))
			}
		case ninelives.Image:
			if len(p.Data) > 0 {
				content = append(content, sdk.ToolContent(sdk.ImageBlock(encoded(p.Data), p.MediaType)))
			}
		case ninelives.File:
			content = append(content, textContent("[file "+oneLine(p.Name)+"]"))
		}
	}
	return content
}

func textContent(text string) sdk.ToolCallContent { return sdk.ToolContent(sdk.TextBlock(text)) }

// fenced shows text as it is: editors read content as Markdown.
func fenced(text string) sdk.ToolCallContent {
	text = visible.Text(text)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return textContent(fence + "\n" + text + fence)
}

// oneLine makes any text one line that is safe to show.
func oneLine(text string) string { return visible.Line(text) }

func shortened(text string) string {
	line := []rune(oneLine(text))
	if len(line) > titleRunes {
		return string(line[:titleRunes-1]) + "…"
	}
	return string(line)
}

func quoted(text string) string { return strconv.Quote(shortened(text)) }
