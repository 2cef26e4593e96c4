// Package jsonout turns a model's text into the JSON that was asked for:
// extract, repair the syntax, validate. What is cut off is never completed,
// and what was written is never rewritten beyond its syntax: numbers keep
// their digits and objects their duplicate members.
package jsonout

import (
	"fmt"
	"strings"
)

// Result is what became of an answer.
type Result struct {
	// JSON is the value as the model wrote it, or as its syntax was repaired;
	// nil if none was found whole.
	JSON []byte
	// Problems are all the ways in which the answer misses what was asked for;
	// none means that JSON is good.
	Problems []Problem
	// Truncated says that the value is cut off. It is then not repaired.
	Truncated bool
	// Repaired says that the syntax of JSON was repaired.
	Repaired bool
}

// OK reports whether the answer is what was asked for.
func (r Result) OK() bool { return r.JSON != nil && len(r.Problems) == 0 }

// Problem is one way in which an answer misses its schema.
type Problem struct {
	// Path is the JSON pointer of the value concerned; empty means the whole.
	Path string
	// Message says what is wrong there, in one line.
	Message string
}

// String is "/path: message".
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// maxProblems bounds the list: a model is not helped by more.
const maxProblems = 50

// Check finds the JSON in a text and holds it against a schema; a nil schema
// takes any JSON value. Where the text holds several values, the first that
// meets the schema is the answer, else the first.
func Check(text string, s *Schema) Result {
	found := extract(text)
	var first *Result
	for _, c := range found.values {
		r := Result{JSON: []byte(c.json), Repaired: c.repaired, Problems: s.problems([]byte(c.json))}
		if r.OK() {
			return r
		}
		if first == nil {
			first = &r
		}
	}
	switch {
	case found.cut:
		return Result{Truncated: true, Problems: []Problem{{Message: "the JSON is cut off before its end"}}}
	case first != nil:
		return *first
	case found.broken != "":
		return Result{Problems: []Problem{{Message: "the JSON is malformed: " + found.broken}}}
	}
	return Result{Problems: []Problem{{Message: "there is no JSON value in the answer"}}}
}

// RepairPrompt asks a model to mend its answer. raw is the answer; leave it
// empty where the model sees it as its own last message.
func RepairPrompt(raw string, problems []Problem) string {
	var b strings.Builder
	b.WriteString("The answer is not the JSON that was asked for.\n")
	if raw != "" {
		fmt.Fprintf(&b, "\nThe answer was:\n%s\n", raw)
	}
	b.WriteString("\nWhat is wrong with it:\n")
	for _, p := range problems {
		fmt.Fprintf(&b, "- %s\n", p)
	}
	b.WriteString("\nPlease reply with the corrected JSON value alone: no explanation, no code fence.")
	return b.String()
}
