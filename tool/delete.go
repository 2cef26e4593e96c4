package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// What one call of delete_file may take: so many files are judged and kept one
// by one.
const (
	deleteFiles = 1000
	deleteKept  = 256 << 20
)

type deleteArguments struct {
	Path      string `json:"path" jsonschema:"path of the file or directory, relative to the workspace"`
	Recursive bool   `json:"recursive,omitzero" jsonschema:"deletes a directory with all that is in it"`
}

func deleteFile(w *Workspace) Tool {
	return &writer[deleteArguments]{
		typed: typed[deleteArguments]{
			spec: Spec{Tool: describe[deleteArguments]("delete_file", "Deletes a file of the workspace, or a directory: an empty one, or with recursive all that is in it. "+
				"Of a symbolic link the link is deleted.")},
			needs: func(a deleteArguments) ([]Need, error) {
				files, err := w.doomed(context.Background(), a)
				var needs []Need
				for _, f := range files {
					needs = append(needs, Need{Kind: NeedDelete, Target: f})
				}
				return needs, err
			},
		},
		w:    w,
		plan: func(ctx context.Context, _ *Call, a deleteArguments) (plan, error) { return w.planDelete(ctx, a) },
	}
}

// doomed lists what a call deletes, in the order in which it can be: what is in
// a directory before the directory.
func (w *Workspace) doomed(ctx context.Context, a deleteArguments) ([]string, error) {
	rel, err := w.resolve(a.Path, false)
	if err != nil {
		return nil, err
	}
	if rel == "." {
		return nil, errors.New("the workspace itself cannot be deleted; give the path of a file in it")
	}
	p := location{root: w.root, name: rel, shown: rel}
	info, err := w.root.Lstat(rel)
	if err != nil {
		return nil, p.failed("delete", err)
	}
	if !info.IsDir() {
		return []string{rel}, nil
	}
	entries, err := entriesOf(w.root, rel)
	if err != nil {
		return nil, p.failed("delete", err)
	}
	if len(entries) > 0 && !a.Recursive {
		return nil, fmt.Errorf("the directory %s is not empty (%s); set recursive to delete all that is in it", visible.Escaped(rel), plural(len(entries), "entry"))
	}
	files := []string{rel}
	k := walker{root: w.root, all: true}
	err = k.from(ctx, rel, func(name string, _ fs.FileInfo) error {
		if files = append(files, name); len(files) > deleteFiles {
			return fmt.Errorf("%s holds more than %d files; delete its parts one after the other", visible.Escaped(rel), deleteFiles)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if k.unreadable > 0 {
		return nil, fmt.Errorf("cannot delete %s: %s in it cannot be read", visible.Escaped(rel), plural(k.unreadable, "directory"))
	}
	slices.Reverse(files)
	return files, nil
}

func (w *Workspace) planDelete(ctx context.Context, a deleteArguments) (plan, error) {
	files, err := w.doomed(ctx, a)
	if err != nil {
		return plan{}, err
	}
	var p plan
	var unkept []string
	kept := int64(0)
	for _, f := range files {
		if ctx.Err() != nil {
			return plan{}, errors.New("stopped; nothing was deleted")
		}
		before, err := w.look(f)
		if err != nil {
			// What cannot be read can be deleted all the same, but not be kept.
			if before, err = w.bare(f); err != nil {
				return plan{}, err
			}
		}
		if before.FileState == nil {
			continue
		}
		if kept += before.Size; kept > deleteKept {
			before.Unkept, before.content = true, nil
		}
		if before.Unkept {
			unkept = append(unkept, f)
		}
		p.steps = append(p.steps, step{path: f, before: before})
	}
	name := files[len(files)-1]
	p.text, p.summary = fmt.Sprintf("Deleted %s.", name), "deleted "+visible.EscapedLine(name)
	if n := len(files) - 1; n > 0 {
		p.text = fmt.Sprintf("Deleted %s with %s in it.", name, plural(n, "entry"))
		p.summary += fmt.Sprintf(" (%s)", plural(n, "entry"))
	}
	if len(unkept) > 0 {
		p.text += fmt.Sprintf(" The content of %s was not kept (the first is %s): that cannot be undone.", plural(len(unkept), "file"), unkept[0])
	}
	return p, nil
}

// bare is the state of a file whose content cannot be read.
func (w *Workspace) bare(rel string) (standing, error) {
	info, err := w.root.Lstat(rel)
	if err != nil {
		return standing{}, w.failed("delete", rel, err)
	}
	return standing{
		FileState: &FileState{Mode: uint32(info.Mode()), Size: info.Size(), Unkept: true},
		stamp:     stampOf(info),
	}, nil
}
