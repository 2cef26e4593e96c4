package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Limits of what is read. They are above what any model takes.
const (
	maxStdin  = 32 << 20
	maxImage  = 20 << 20
	maxSchema = 2 << 20
)

// input is what the user gives to one ask.
type input struct {
	words  []string // arguments
	system string
	images []string // files or URLs
	schema string   // file

	lost []string // what could not be taken: --schema, --image, stdin
}

// What could not be taken, in input.lost.
const (
	lostSchema = "--schema"
	lostImage  = "--image"
	lostStdin  = "stdin"
)

// request makes the request of the input and of standard input. The question
// counts most: if only what goes with it cannot be read, there is a request of
// the question alone beside the error, so that it can be kept.
func (p *process) request(ctx context.Context, in *input) (*ninelives.Request, error) {
	question := strings.ToValidUTF8(strings.TrimSpace(strings.Join(in.words, " ")), "\uFFFD")
	if question == "-" { // what many commands call standard input
		question = ""
	}
	text, err := p.readStdin(ctx)
	switch {
	case err != nil && question == "":
		return nil, err
	case err != nil:
		in.lost = append(in.lost, lostStdin)
	case question == "" && strings.TrimSpace(text) == "":
		return nil, usagef(`nothing to ask: write a question, as in: ninelives ask "Why do cats land on their feet?"`)
	}
	req, mistake := p.replace(ctx, ninelives.Prompt(withContext(text, question)), in)
	return req, errors.Join(err, mistake)
}

// withContext puts what came on standard input before the question.
func withContext(text, question string) string {
	switch {
	case text == "":
		return question
	case question == "":
		return text
	}
	return strings.TrimRight(text, "\n") + "\n\n" + question
}

// replace gives a copy of a request with what the flags say instead: the
// instruction, the pictures, the schema. With an error it lacks what could not
// be read.
func (p *process) replace(ctx context.Context, req *ninelives.Request, in *input) (*ninelives.Request, error) {
	req = req.Clone()
	if in.system != "" {
		if len(req.Messages) > 0 && req.Messages[0].Role == ninelives.RoleSystem {
			req.Messages = req.Messages[1:]
		}
		req.Messages = append([]ninelives.Message{ninelives.SystemText(strings.ToValidUTF8(in.system, "\uFFFD"))}, req.Messages...)
	}
	var mistakes []error
	if in.schema != "" {
		output, err := readSchema(ctx, "--schema", in.schema)
		if err != nil {
			mistakes, in.lost = append(mistakes, err), append(in.lost, lostSchema)
		}
		req.Output = output
	}
	if len(in.images) > 0 {
		asked := &req.Messages[len(req.Messages)-1]
		asked.Parts = slices.DeleteFunc(asked.Parts, func(p ninelives.Part) bool { _, is := p.(ninelives.Image); return is })
		for i, name := range in.images {
			image, err := readImage(ctx, name)
			if err != nil {
				mistakes, in.lost = append(mistakes, err), append(in.lost, lostImage)
				continue
			}
			asked.Parts = slices.Insert(asked.Parts, min(i, len(asked.Parts)), ninelives.Part(image))
		}
	}
	return req, errors.Join(mistakes...)
}

// prepend puts what came on standard input before a question that was kept
// without it.
func prepend(req *ninelives.Request, text string) *ninelives.Request {
	req = req.Clone()
	asked := &req.Messages[len(req.Messages)-1]
	for i, part := range asked.Parts {
		if question, is := part.(ninelives.Text); is {
			question.Text = withContext(text, question.Text)
			asked.Parts[i] = question
			break
		}
	}
	return req
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
			if endless(p.stdin) {
				return "", ctx.Err()
			}
			ctx = context.WithoutCancel(ctx) // a file ends by itself
		case <-patience.C:
			fmt.Fprintln(p.stderr, "ninelives: waiting for standard input to end (close it with < /dev/null if it holds nothing)")
		}
	}
}

// endless reports whether reading may wait for somebody.
func endless(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
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
func readImage(ctx context.Context, name string) (ninelives.Image, error) {
	if scheme, rest, ok := strings.Cut(name, ":"); ok && len(scheme) > 1 {
		scheme = strings.ToLower(scheme)
		switch u, err := url.Parse(name); {
		case scheme == "https" || scheme == "http":
			if err != nil || u.Host == "" {
				return ninelives.Image{}, usagef("--image %s is no whole address: write it like https://example.com/cat.png", name)
			}
			return ninelives.Image{URL: scheme + ":" + rest}, nil
		case strings.HasPrefix(rest, "//") || scheme == "data":
			return ninelives.Image{}, usagef("--image %.60s: a picture is a file or an https address", name)
		}
	}
	data, err := readFile(ctx, "--image", name, maxImage)
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
