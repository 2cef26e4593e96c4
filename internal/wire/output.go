package wire

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// OutputSupport is how the target enforces the Output of a request by itself.
// What it does not enforce is asked for in words: see OutputInstruction.
func OutputSupport(o *ninelives.Output, t Target) ninelives.SchemaSupport {
	support := t.Candidate.Schema
	if t.Dialect.SchemaSet {
		support = t.Dialect.Schema
	}
	switch {
	case o == nil:
		return ninelives.SchemaNone
	case support == ninelives.SchemaTool && (t.Dialect.NoTools || o.Schema == nil):
		return ninelives.SchemaNone
	case support == ninelives.SchemaNative && o.Schema == nil:
		return ninelives.SchemaObject
	}
	return support
}

// OutputInstruction asks for an Output in words. It contains the word JSON,
// without which some servers reject JSON mode and others answer it with white
// space until the limit.
func OutputInstruction(o *ninelives.Output) string {
	if o.Schema == nil {
		return "Answer with one JSON value and nothing else: no prose, no code fence."
	}
	var b strings.Builder
	b.WriteString("Answer with one JSON value that satisfies the JSON schema below, and nothing else: no prose, no code fence.")
	if o.Description != "" {
		b.WriteString("\n\nWhat it is: ")
		b.WriteString(o.Description)
	}
	b.WriteString("\n\n")
	b.Write(o.Schema)
	return b.String()
}

// Instruct adds an instruction to a request: to the last of its leading system
// messages, for many templates take only one, or as the first message.
func Instruct(req *ninelives.Request, instruction string) *ninelives.Request {
	c := req.Clone()
	at := -1
	for i, m := range c.Messages {
		if m.Role != ninelives.RoleSystem && m.Role != ninelives.RoleDeveloper {
			break
		}
		at = i
	}
	text := ninelives.Text{Text: instruction}
	if at < 0 {
		c.Messages = append([]ninelives.Message{{Role: ninelives.RoleSystem, Parts: []ninelives.Part{text}}}, c.Messages...)
		return c
	}
	c.Messages[at].Parts = joinParts(c.Messages[at].Parts, []ninelives.Part{text})
	return c
}

// OutputName is how a provider is told to call the form of the answer.
func OutputName(o *ninelives.Output) string {
	if o.Name != "" {
		return o.Name
	}
	return "answer"
}

// ForceOutput adds the tool that stands in for a schema: its arguments are the
// answer. Beside other tools some call is required, else this one.
func ForceOutput(tools []ninelives.Tool, o *ninelives.Output) ([]ninelives.Tool, ninelives.ToolChoice, string) {
	t := ninelives.Tool{Name: OutputName(o), Description: o.Description, Schema: o.Schema, Strict: o.Strict}
	for slices.ContainsFunc(tools, func(other ninelives.Tool) bool { return other.Name == t.Name }) {
		t.Name += "_"
	}
	if t.Description == "" {
		t.Description = "Give the final answer."
	}
	choice := ninelives.ToolChoice{Mode: ninelives.ToolChoiceTool, Name: t.Name}
	if len(tools) > 0 {
		choice = ninelives.ToolChoice{Mode: ninelives.ToolChoiceRequired}
	}
	return append(tools, t), choice, t.Name
}
