package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// write writes the plan for people.
func (p *plan) write(w io.Writer) error {
	var b strings.Builder
	p.writePlan(&b)
	switch n := len(p.Problems); n {
	case 0:
		fmt.Fprintln(&b, "no problems")
	case 1:
		fmt.Fprintln(&b, "1 problem:")
	default:
		fmt.Fprintf(&b, "%d problems:\n", n)
	}
	for _, problem := range p.Problems {
		fmt.Fprintln(&b, "  "+oneLine(problem.line()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p problemPlan) line() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

func (p *plan) writePlan(b *strings.Builder) {
	if len(p.Routes) == 0 {
		return // it could not be read
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	row := func(name, text, from string) { fmt.Fprintf(t, "%s\t%s%s\n", name, oneLine(text), origin(from)) }
	files := strings.Join(p.Files, ", then ")
	if files == "" {
		files = "none: the environment and the defaults"
	}
	row("files", files, "")
	row("listen", p.Listen.text(), or(p.Listen.From, "default"))
	row("journal", p.Journal.text(), or(p.Journal.From, "default"))
	if p.Limits != nil {
		row("limits", p.Limits.text(), p.Limits.From)
	}
	if len(p.Keys) == 0 {
		row("keys", "none: whoever reaches it may ask", "")
	}
	for _, k := range p.Keys {
		row("key", k.text(), k.From)
	}
	_ = t.Flush()
	for _, r := range p.Routes {
		r.write(b, p.Simulated)
	}
	fmt.Fprintln(b)
}

func origin(from string) string {
	if from == "" {
		return ""
	}
	return "  (" + oneLine(from) + ")"
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (l listenPlan) text() string {
	text := strings.Join(l.Addresses, ", ")
	if l.TLS {
		text += ", TLS"
	}
	if l.Insecure {
		text += ", insecure"
	}
	return text
}

func (j journalPlan) text() string {
	if j.Off {
		return "off: nothing is kept, nothing can be resumed"
	}
	text := "keeps content " + j.Retention
	if j.Refuse {
		text += ", refuses calls when it cannot be written"
	} else {
		text += ", serves without it when it cannot be written"
	}
	if j.Encrypted {
		return text + ", encrypted"
	}
	return text + ", not encrypted"
}

func (l limitsPlan) text() string {
	var parts []string
	add := func(name string, value any) {
		if text := fmt.Sprint(value); text != "0" && text != "" {
			parts = append(parts, name+" "+text)
		}
	}
	add("body", l.Body)
	add("headers", l.Headers)
	add("connections", l.Connections)
	add("in_flight", l.InFlight)
	add("memory", l.Memory)
	add("read_timeout", l.ReadTimeout)
	add("write", l.Write)
	return strings.Join(parts, ", ")
}

func (k keyPlan) text() string {
	parts := []string{k.Name}
	if len(k.Routes) > 0 {
		parts = append(parts, "may use "+strings.Join(k.Routes, " "))
	} else {
		parts = append(parts, "may use everything")
	}
	if b := k.Budget; b != nil {
		if b.Money > 0 {
			parts = append(parts, money(b.Money)+" per "+b.Per)
		}
		if b.Tokens > 0 {
			parts = append(parts, fmt.Sprintf("%d tokens per %s", b.Tokens, b.Per))
		}
	}
	if r := k.Rate; r != nil {
		if r.Requests > 0 {
			parts = append(parts, fmt.Sprintf("%d requests a minute", r.Requests))
		}
		if r.Tokens > 0 {
			parts = append(parts, fmt.Sprintf("%d tokens a minute", r.Tokens))
		}
		if r.Concurrent > 0 {
			parts = append(parts, fmt.Sprintf("%d calls at once", r.Concurrent))
		}
	}
	if k.Priority != 0 {
		parts = append(parts, fmt.Sprintf("priority %+d", k.Priority))
	}
	return strings.Join(parts, ", ")
}

func (r routePlan) write(b *strings.Builder, simulated bool) {
	fmt.Fprintf(b, "\nroute %s%s\n", oneLine(r.Name), origin(r.From))
	if len(r.Match) > 0 {
		fmt.Fprintln(b, "  takes "+oneLine(strings.Join(r.Match, " ")))
	}
	how := []string{"order " + r.Order, "mode " + r.Mode}
	if r.Sticky {
		how = append(how, "sticky")
	}
	fmt.Fprintln(b, "  "+strings.Join(append(how, r.Options...), ", "))
	fmt.Fprint(b, "  policy "+r.Preset)
	if len(r.Differs) > 0 {
		fmt.Fprint(b, ", with "+strings.Join(r.Differs, ", "))
	}
	fmt.Fprintln(b)
	if len(r.Candidates) == 0 && simulated {
		fmt.Fprintln(b, "  no key and no local server was found: the built-in simulator answers")
	}
	var rows strings.Builder
	t := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	for i, c := range r.Candidates {
		fmt.Fprintf(t, "  %d\t%s\t%s\t%s\t%s\t%s\t%s\n", i+1, oneLine(c.Name), c.Protocol, oneLine(c.Host), c.window(), c.price(), c.weight())
	}
	_ = t.Flush()
	for line := range strings.Lines(rows.String()) {
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
	}
	for _, c := range r.Candidates {
		for _, note := range c.Notes {
			fmt.Fprintln(b, "  "+oneLine(c.Name+": "+note))
		}
	}
	for _, c := range r.Candidates {
		if c.Live != nil {
			fmt.Fprintln(b, "  "+oneLine(c.Name+": "+c.Live.text()))
		}
	}
}

func (c candidatePlan) window() string {
	return fmt.Sprintf("window %d (%s)", c.Window, c.WindowSource)
}

func (c candidatePlan) price() string {
	if c.Price == nil {
		return "no price known"
	}
	return money(c.Price.Input) + " in, " + money(c.Price.Output) + " out per million tokens"
}

func (c candidatePlan) weight() string {
	if c.Weight == 0 {
		return ""
	}
	return fmt.Sprintf("weight %v", c.Weight)
}

func (l livePlan) text() string {
	if l.OK {
		return fmt.Sprintf("ok, %d ms", l.MS)
	}
	return fmt.Sprintf("%s after %d ms: %s: %s", l.Class, l.MS, l.Message, l.Do)
}
