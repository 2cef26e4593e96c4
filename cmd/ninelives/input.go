package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/jsonout"
)

// Limits of what is read. They are above what any model takes.
const (
	maxStdin = 32 << 20
	maxImage = 20 << 20
)

// input is what the user gives to one ask.
type input struct {
	words  []string // arguments
	system string
	images []string // files or URLs
	schema string   // file
}

// request makes the request of the input and of standard input. The question
// is read first: if only what goes with it cannot be, there is a request of
// the question alone beside the error, so that it can be kept.
func (p *process) request(ctx context.Context, in input) (*ninelives.Request, error) {
	question := strings.ToValidUTF8(strings.TrimSpace(strings.Join(in.words, " ")), "\uFFFD")
	text, err := p.readStdin(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case question == "" && strings.TrimSpace(text) == "":
		return nil, usagef(`nothing to ask: write a question, as in: ninelives ask "Why do cats land on their feet?"`)
	case text != "" && question != "":
		text = strings.TrimRight(text, "\n") + "\n\n" + question
	case question != "":
		text = question
	}
	return p.replace(ninelives.Prompt(text), in)
}

// replace gives a copy of a request with what the flags say instead: the
// instruction, the pictures, the schema. With an error it lacks what could not
// be read.
func (p *process) replace(req *ninelives.Request, in input) (*ninelives.Request, error) {
	req = req.Clone()
	if in.system != "" {
		if len(req.Messages) > 0 && req.Messages[0].Role == ninelives.RoleSystem {
			req.Messages = req.Messages[1:]
		}
		req.Messages = append([]ninelives.Message{ninelives.SystemText(in.system)}, req.Messages...)
	}
	var mistakes []error
	if in.schema != "" {
		output, err := readSchema(in.schema)
		mistakes = append(mistakes, err)
		req.Output = output
	}
	if len(in.images) > 0 {
		asked := &req.Messages[len(req.Messages)-1]
		asked.Parts = slices.DeleteFunc(asked.Parts, func(p ninelives.Part) bool { _, is := p.(ninelives.Image); return is })
		for i, name := range in.images {
			image, err := readImage(name)
			mistakes = append(mistakes, err)
			if err == nil {
				asked.Parts = slices.Insert(asked.Parts, min(i, len(asked.Parts)), ninelives.Part(image))
			}
		}
	}
	return req, errors.Join(mistakes...)
}

func countImages(req *ninelives.Request) int {
	n := 0
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if _, is := p.(ninelives.Image); is {
				n++
			}
		}
	}
	return n
}

// readStdin reads standard input unless a person sits there. A pipe that stays
// open is waited for: leaving it would lose what somebody sends.
func (p *process) readStdin(ctx context.Context) (string, error) {
	if p.stdin == nil || isTerminal(p.stdin) {
		return "", nil
	}
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(p.stdin, maxStdin+1))
		read <- result{text, err}
	}()
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	for {
		select {
		case r := <-read:
			return stdinText(r.text, r.err)
		case <-ctx.Done():
			return "", ctx.Err()
		case <-patience.C:
			fmt.Fprintln(p.stderr, "ninelives: waiting for standard input to end (close it with < /dev/null if it holds nothing)")
		}
	}
}

func stdinText(text []byte, err error) (string, error) {
	var path *fs.PathError
	switch {
	case errors.As(err, &path) || errors.Is(err, fs.ErrClosed): // there is none: closed, or a directory
		return "", nil
	case err != nil:
		return "", usagef("cannot read standard input: %v", err)
	case len(text) > maxStdin:
		return "", usagef("standard input is longer than %d MB: no model takes that much", maxStdin>>20)
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text):
		return "", usagef("standard input is not text: give a picture with --image FILE, and other files as text in UTF-8")
	}
	return string(bytes.TrimPrefix(text, []byte("\ufeff"))), nil
}

// readImage takes a file or the address of a picture.
func readImage(name string) (ninelives.Image, error) {
	if strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://") {
		return ninelives.Image{URL: name}, nil
	}
	data, err := readFile("--image", name, maxImage)
	if err != nil {
		return ninelives.Image{}, err
	}
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return ninelives.Image{MediaType: kind, Data: data}, nil
	}
	kind, _, _ = strings.Cut(kind, ";")
	return ninelives.Image{}, usagef("--image %s is no picture that models take (it looks like %s): use PNG, JPEG, GIF or WebP", name, kind)
}

// readSchema takes a JSON schema from a file and makes sure that it is one.
func readSchema(name string) (*ninelives.Output, error) {
	data, err := readFile("--schema", name, maxImage)
	if err != nil {
		return nil, err
	}
	if _, err := jsonout.Compile(data); err != nil {
		return nil, usagef("--schema %s is no JSON schema: %v", name, err)
	}
	return &ninelives.Output{Name: schemaName(name), Schema: data}, nil
}

// schemaName makes a file's name one that providers take.
func schemaName(path string) string {
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, base)
	if name == "" {
		return "answer"
	}
	return name[:min(len(name), 64)]
}

// readFile reads a file that a flag names.
func readFile(flag, name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, limit+1)); err == nil {
			if int64(len(data)) > limit {
				return nil, usagef("%s %s is larger than %d MB", flag, name, limit>>20)
			}
			if len(data) == 0 {
				return nil, usagef("%s %s is empty", flag, name)
			}
			return data, nil
		}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return nil, usagef("%s %s cannot be read: %v", flag, name, err)
}
