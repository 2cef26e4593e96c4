package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

type writeArguments struct {
	Path    string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the whole content of the file"`
}

func writeFile(w *Workspace) Tool {
	return &writer[writeArguments]{
		typed: typed[writeArguments]{
			spec: Spec{Tool: describe[writeArguments]("write_file", "Writes a whole file of the workspace, and the directories above it where they are missing. "+
				"A file that exists must have been read in this session, and not been changed since; to change a part of it use edit_file.")},
			needs: func(a writeArguments) ([]Need, error) { return w.writeNeeds(a.Path) },
		},
		w:    w,
		plan: func(ctx context.Context, call *Call, a writeArguments) (plan, error) { return w.planWrite(call, a) },
	}
}

// writeNeeds is the need of a tool that writes a file.
func (w *Workspace) writeNeeds(name string) ([]Need, error) {
	rel, err := w.target(name)
	if err != nil {
		return nil, err
	}
	return []Need{{Kind: NeedWrite, Target: rel}}, nil
}

// target is the file that a path to write means.
func (w *Workspace) target(name string) (string, error) {
	rel, err := w.Resolve(name)
	if err != nil {
		return "", err
	}
	if rel == "." || strings.HasSuffix(name, "/") {
		return "", fmt.Errorf("%q is a directory; give the path of a file", visible.Escaped(name))
	}
	return rel, nil
}

func (w *Workspace) planWrite(call *Call, a writeArguments) (plan, error) {
	rel, err := w.target(a.Path)
	if err != nil {
		return plan{}, err
	}
	before, err := w.look(rel)
	if err != nil {
		return plan{}, err
	}
	if before.FileState != nil {
		if before.kind() != 0 {
			return plan{}, fmt.Errorf("cannot write %s: it is %s", visible.Escaped(rel), kindOf(before.kind()))
		}
		if call != nil {
			if err := w.fresh(call.Session, rel, before.stamp, before.Hash); err != nil {
				return plan{}, err
			}
		}
	}
	after := w.contentOf([]byte(a.Content))
	if before.FileState != nil && alike(before.FileState, after.withMode(before.Mode)) {
		return plan{text: fmt.Sprintf("%s has exactly this content already; nothing was changed.", rel), summary: "nothing to change in " + visible.EscapedLine(rel)}, nil
	}
	steps, err := w.parents(rel)
	if err != nil {
		return plan{}, err
	}
	verb := "Created"
	if before.FileState != nil {
		verb = "Wrote"
	}
	p := plan{
		steps:   append(steps, step{rel, before, after}),
		text:    fmt.Sprintf("%s %s: %s, %s.", verb, rel, plural(countLines(a.Content), "line"), size(int64(len(a.Content)))),
		summary: fmt.Sprintf("%s %s (%s)", strings.ToLower(verb), visible.EscapedLine(rel), plural(countLines(a.Content), "line")),
	}
	if crlf(string(before.content)) && !crlf(a.Content) && strings.Contains(a.Content, "\n") {
		p.text += " Its lines ended with CRLF and do not any more."
	}
	if before.FileState != nil && before.Unkept {
		p.text += " What was there before was not kept: it cannot be undone."
	}
	return p, nil
}

func (s standing) withMode(mode uint32) *FileState {
	f := *s.FileState
	f.Mode = mode
	return &f
}
