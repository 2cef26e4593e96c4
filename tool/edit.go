package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// edit is one replacement.
type edit struct {
	Old string `json:"old_string" jsonschema:"the text to replace, exactly as it is in the file, with enough lines around it to be unique"`
	New string `json:"new_string" jsonschema:"what takes its place"`
	All bool   `json:"replace_all,omitzero" jsonschema:"replaces every occurrence instead of the only one"`
}

type editArguments struct {
	Path string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	Old  string `json:"old_string,omitzero" jsonschema:"the text to replace, exactly as it is in the file, with enough lines around it to be unique"`
	New  string `json:"new_string,omitzero" jsonschema:"what takes its place"`
	All  bool   `json:"replace_all,omitzero" jsonschema:"replaces every occurrence instead of the only one"`
	// Edits are several at once.
	Edits []edit `json:"edits,omitzero" jsonschema:"several edits instead of one, made one after the other, all or none"`
}

// list gives the edits in whichever form they came.
func (a editArguments) list() ([]edit, error) {
	switch one := (a.Old != "" || a.New != "" || a.All); {
	case one && len(a.Edits) > 0:
		return nil, errors.New("give either old_string and new_string, or edits, not both")
	case len(a.Edits) > 0:
		return a.Edits, nil
	case one:
		return []edit{{a.Old, a.New, a.All}}, nil
	}
	return nil, errors.New("there is nothing to do: give old_string and new_string, or edits")
}

// editDiff is how long a diff the model is told of its edit, in bytes.
const editDiff = 4 << 10

func editFile(w *Workspace) Tool {
	return &writer[editArguments]{
		typed: typed[editArguments]{
			spec: Spec{Tool: describe[editArguments]("edit_file", "Replaces text in a file of the workspace. old_string must be in the file exactly, "+
				"blanks and indentation included, and only once unless replace_all is set. The numbers that read_file puts before the lines are not part of the file. "+
				"Line ends and byte order mark stay as they are.")},
			needs: func(a editArguments) ([]Need, error) {
				if _, err := a.list(); err != nil {
					return nil, err
				}
				return w.writeNeeds(a.Path)
			},
		},
		w:    w,
		plan: func(_ context.Context, _ *Call, a editArguments) (plan, error) { return w.planEdit(a) },
	}
}

func (w *Workspace) planEdit(a editArguments) (plan, error) {
	edits, err := a.list()
	if err != nil {
		return plan{}, err
	}
	rel, err := w.target(a.Path)
	if err != nil {
		return plan{}, err
	}
	before, err := w.look(rel)
	if err != nil {
		return plan{}, err
	}
	switch {
	case before.FileState == nil:
		p := location{root: w.root, name: rel}
		return plan{}, fmt.Errorf("%s does not exist%s; write_file creates files", visible.Escaped(rel), p.hint())
	case before.kind() != 0:
		return plan{}, fmt.Errorf("cannot edit %s: it is %s", visible.Escaped(rel), kindOf(before.kind()))
	case before.Hash == "":
		return plan{}, fmt.Errorf("cannot edit %s: it has %s, and files of up to %s are edited", visible.Escaped(rel), size(before.Size), size(keepFile))
	}
	content, count, err := applyEdits(before.content, edits)
	if err != nil {
		return plan{}, fmt.Errorf("%s was not changed: %w", visible.Escaped(rel), err)
	}
	p := plan{
		steps:   []step{{rel, before, w.contentOf(content)}},
		text:    fmt.Sprintf("Edited %s: %s.", rel, plural(count, "replacement")),
		summary: fmt.Sprintf("edited %s (%s)", visible.EscapedLine(rel), plural(count, "replacement")),
	}
	if bytes.Equal(content, before.content) {
		p.steps = nil
		p.text = fmt.Sprintf("The edits of %s cancel each other out; nothing was changed.", rel)
	} else if diff := rawDiff(rel, before.content, content, editDiff); diff != "" {
		p.text += "\n" + diff
	}
	return p, nil
}

// applyEdits makes the edits one after the other and counts the replacements.
// It is pure. The byte order mark stays, and in a file whose lines mostly end
// with CRLF so do the lines of an edit that is written with LF.
func applyEdits(content []byte, edits []edit) (after []byte, count int, err error) {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return nil, 0, errors.New("it is UTF-16, which edit_file cannot change; convert it to UTF-8 first")
	}
	if binary(content) {
		return nil, 0, errors.New("it is a binary file")
	}
	text, marked := strings.CutPrefix(string(content), string(bom))
	for i, e := range edits {
		which := ""
		if len(edits) > 1 {
			which = fmt.Sprintf("edit %d of %d: ", i+1, len(edits))
		}
		var n int
		if text, n, err = applyEdit(text, e); err != nil {
			return nil, 0, fmt.Errorf("%s%w", which, err)
		}
		count += n
	}
	if marked {
		text = string(bom) + text
	}
	return []byte(text), count, nil
}

func applyEdit(text string, e edit) (string, int, error) {
	switch {
	case e.Old == "":
		return "", 0, errors.New("old_string is empty; give the text to replace, or write the whole file with write_file")
	case e.Old == e.New:
		return "", 0, errors.New("old_string and new_string are the same")
	}
	old, new := e.Old, e.New
	if mostlyCRLF(text) {
		if o := toCRLF(old); strings.Contains(text, o) || !strings.Contains(text, old) {
			old = o
		}
		if !strings.Contains(new, "\r\n") {
			new = toCRLF(new)
		}
	}
	found := occurrences(text, old)
	switch {
	case len(found) == 0:
		return "", 0, notFound(text, e)
	case e.All:
		return strings.ReplaceAll(text, old, new), strings.Count(text, old), nil
	case len(found) > 1:
		least := ""
		if len(found) == countedOccurrences {
			least = "at least "
		}
		return "", 0, fmt.Errorf("old_string is there %s%d times, in the lines %s; give more lines around the one that is meant, or set replace_all",
			least, len(found), lineNumbers(text, found))
	}
	return text[:found[0]] + new + text[found[0]+len(old):], 1, nil
}

// countedOccurrences is how many occurrences are counted: each may cost as much
// as the text is long.
const countedOccurrences = 100

// occurrences gives where a text is found, overlapping ones too, up to the
// number that is counted.
func occurrences(text, what string) []int {
	var at []int
	for from := 0; len(at) < countedOccurrences; {
		i := strings.Index(text[from:], what)
		if i < 0 {
			break
		}
		at = append(at, from+i)
		from += i + 1
	}
	return at
}

// lineNumbers lists the lines in which offsets lie; of many, the first ten.
func lineNumbers(text string, at []int) string {
	var out []string
	line, from := 1, 0
	for _, i := range at {
		line += strings.Count(text[from:i], "\n")
		from = i
		out = append(out, fmt.Sprint(line))
	}
	out = slices.Compact(out)
	if len(out) > 10 {
		return strings.Join(out[:10], ", ") + ", …"
	}
	return strings.Join(out, ", ")
}

func mostlyCRLF(text string) bool {
	return 2*strings.Count(text, "\r\n") > strings.Count(text, "\n")
}

func toCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}
