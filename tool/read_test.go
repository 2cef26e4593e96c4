package tool

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestReadingNumbersLinesAndTellsOfTheirEnds(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{
		"unix":  "one\n\ttwo\n\nlast",
		"dos":   "one\r\ntwo\r\n",
		"mixed": "one\r\ntwo\nthree\n",
		"bom":   "\xef\xbb\xbfone\n",
		"utf16": "\xff\xfeh\x00i\x00\n\x00",
		"latin": "caf\xe9\n",
		"empty": "",
	})
	for name, want := range map[string]string{
		"unix":  "     1\tone\n     2\t\ttwo\n     3\t\n     4\tlast\n",
		"dos":   "     1\tone\n     2\ttwo\n[the lines end with CRLF, which edit_file keeps]\n",
		"mixed": "     1\tone\n     2\ttwo\n     3\tthree\n[lines end with CRLF, but 2 of them with LF]\n",
		"bom":   "     1\tone\n[the file begins with a byte order mark, which edit_file keeps]\n",
		"utf16": "     1\thi\n[the file is UTF-16; it is shown as UTF-8, and edit_file cannot change it]\n",
		"latin": "     1\tcaf\ufffd\n[some bytes are no UTF-8 and are shown as \ufffd]\n",
		"empty": "[the file is empty]\n",
	} {
		if got := works(t, run(t, w, "read_file", object{"path": name})).Text(); got != want {
			t.Errorf("%s:\n%q, want\n%q", name, got, want)
		}
	}
}

func TestReadingALongFileGoesOnWhereItEnded(t *testing.T) {
	w := newWorkspace(t)
	var content strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&content, "line %d\n", i+1)
	}
	lay(t, w, map[string]string{"long": content.String()})
	text := works(t, run(t, w, "read_file", object{"path": "long"})).Text()
	if !strings.HasSuffix(text, "  2000\tline 2000\n[lines 1 to 2000 of 5000; go on with offset 2001]\n") {
		t.Errorf("it ends with %q", text[len(text)-200:])
	}
	text = works(t, run(t, w, "read_file", object{"path": "long", "offset": 4999, "limit": 10})).Text()
	if want := "  4999\tline 4999\n  5000\tline 5000\n[lines 4999 to 5000 of 5000]\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	fails(t, run(t, w, "read_file", object{"path": "long", "offset": 5001}), "5000 lines", "5001")
	fails(t, run(t, w, "read_file", object{"path": "long", "offset": -1}), "cannot be negative")
}

func TestLinesThatAreTooLongAreCutVisibly(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"wide": strings.Repeat("ü", 3000) + "\nnext\n", "huge": strings.Repeat("x", 200<<10)})
	want := "     1\t" + strings.Repeat("ü", 2000) + "… [the line is cut: it has 5.9 KB]\n     2\tnext\n"
	if got := works(t, run(t, w, "read_file", object{"path": "wide"})).Text(); got != want {
		t.Errorf("got %q", got)
	}
	if got := works(t, run(t, w, "read_file", object{"path": "huge"})).Text(); len(got) > 3000 || !strings.Contains(got, "it has 200.0 KB") {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestAPageFitsIntoAResult(t *testing.T) {
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": strings.Repeat(strings.Repeat("x", 500)+"\n", 1000)})
	r := works(t, run(t, w, "read_file", object{"path": "f"}))
	if n := len(r.Text()); n > 50<<10 {
		t.Errorf("%d bytes", n)
	}
	if !strings.Contains(r.Text(), "go on with offset") {
		t.Error("it does not say how to go on")
	}
}

func TestImagesAreShownAndOtherBinariesTold(t *testing.T) {
	w := newWorkspace(t)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	lay(t, w, map[string]string{"p.png": picture.String(), "prog": "\x7fELF\x00\x01", "big.png": picture.String() + strings.Repeat("\x00", readImage)})
	r := works(t, run(t, w, "read_file", object{"path": "p.png"}))
	if img, ok := r.Content[1].(ninelives.Image); !ok || img.MediaType != "image/png" || !bytes.Equal(img.Data, picture.Bytes()) {
		t.Errorf("the content is %v", r.Content)
	}
	fails(t, run(t, w, "read_file", object{"path": "prog"}), "binary file")
	fails(t, run(t, w, "read_file", object{"path": "big.png"}), "up to 5.0 MB")
}

func TestAHugeFileIsReadOnlyAsFarAsItIsShown(t *testing.T) {
	w := newWorkspace(t)
	f, err := os.Create(at(w, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 3 {
		fmt.Fprintf(f, "line %d\n", i+1)
	}
	// A hole of 8 GB behind them: whoever read it would not be done in time.
	line := strings.Repeat("y", 8000) + "\n"
	fmt.Fprint(f, line, line)
	if err := f.Truncate(8 << 30); err != nil {
		t.Skip("the file system has no holes")
	}
	text := works(t, run(t, w, "read_file", object{"path": "huge", "limit": 2})).Text()
	want := "     1\tline 1\n     2\tline 2\n[lines 1 to 2; go on with offset 3]\n[the file has 8.0 GB; only as much as is shown was read]\n"
	if text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	r := named(t, w, "read_file").Run(ctx, &Call{Arguments: encode(t, object{"path": "huge"})})
	fails(t, r, "stopped")
}

func TestWhatIsMissingOrNoFileIsToldAtOnce(t *testing.T) {
	onUnix(t)
	w := newWorkspace(t)
	lay(t, w, map[string]string{"main.go": "x", "dir/": "", "f/x": ""})
	if err := mkfifo(at(w, "pipe")); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	lay(t, w, map[string]string{"zero -> /dev/zero": "", "pipelink -> pipe": ""})
	fails(t, run(t, w, "read_file", object{"path": "mian.go"}), `did you mean "main.go"?`)
	fails(t, run(t, w, "read_file", object{"path": "dir"}), "is a directory", "list_dir")
	fails(t, run(t, w, "read_file", object{"path": "main.go/x"}), "not a directory")
	// None of these may wait for somebody at the other end.
	fails(t, run(t, w, "read_file", object{"path": "pipe"}), "named pipe")
	fails(t, run(t, w, "read_file", object{"path": "pipelink"}), "named pipe")
	fails(t, run(t, w, "read_file", object{"path": "zero"}), "symbolic link")
	fails(t, run(t, w, "write_file", object{"path": "pipe", "content": "x"}), "named pipe")
	fails(t, run(t, w, "edit_file", object{"path": "pipe", "old_string": "a", "new_string": "b"}), "named pipe")
	works(t, run(t, w, "grep", object{"pattern": "x"}))
	works(t, run(t, w, "glob", object{"pattern": "*"}))
	works(t, run(t, w, "list_dir", object{}))
	if got := told(track(t, w, func() {})); got != "" {
		t.Errorf("changes: %s", got)
	}
	works(t, run(t, w, "delete_file", object{"path": "pipe"}))
}

func TestAnUnreadableFileIsTold(t *testing.T) {
	onUnix(t)
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	w := newWorkspace(t)
	lay(t, w, map[string]string{"f": "needle", "g": "needle", "d/x": "needle"})
	for name, mode := range map[string]os.FileMode{"f": 0, "d": 0} {
		if err := os.Chmod(at(w, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(at(w, "d"), 0o755) })
	fails(t, run(t, w, "read_file", object{"path": "f"}), "no permission")
	r := works(t, run(t, w, "grep", object{"pattern": "needle"}))
	for _, want := range []string{"g\n", "[1 file was not readable]", "[1 directory could not be read]"} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("grep does not say %q: %s", want, r.Text())
		}
	}
	changes := track(t, w, func() { lay(t, w, map[string]string{"g": "other"}) })
	if got := told(changes); got != "g: -rw-r--r--, -rw-r--r--" {
		t.Errorf("changes: %s", got)
	}
}
