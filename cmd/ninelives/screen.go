package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"

	shown "github.com/ninelives-ai/ninelives/internal/visible"
)

// isTerminal reports whether a stream is one that a person looks at.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// visible and oneLine make others' words safe to print.
func visible(s string) string { return shown.Text(s) }
func oneLine(s string) string { return shown.Line(s) }

// style paints text if the terminal and its user want it.
type style struct{ on bool }

// styleFor follows NO_COLOR (https://no-color.org) and TERM=dumb.
func styleFor(w io.Writer, env func(string) (string, bool)) style {
	if v, _ := env("NO_COLOR"); v != "" {
		return style{}
	}
	if v, _ := env("TERM"); v == "dumb" {
		return style{}
	}
	return style{isTerminal(w)}
}

func (s style) paint(code, text string) string {
	if !s.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) dim(text string) string   { return s.paint("2", text) }
func (s style) red(text string) string   { return s.paint("31", text) }
func (s style) green(text string) string { return s.paint("32", text) }
func (s style) amber(text string) string { return s.paint("33", text) }
