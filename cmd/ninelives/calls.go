package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
)

func (p *process) calls() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "calls [id]",
		Short: "List what was asked and not answered, or show one call",
		Long: `List what was asked and not answered: calls that failed, were stopped, or whose
process was killed. Take one up with: ninelives ask --resume ID.
With an id, show that call: the question, what was done, the answer.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("ninelives calls takes one id")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			k := p.openJournal("question")
			defer k.close()
			if k.j == nil {
				return &usageError{k.err}
			}
			if len(args) == 1 {
				return p.showCall(cmd.Context(), k, args[0])
			}
			return p.listCalls(cmd.Context(), k, all, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the answered and running ones too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	return cmd
}

// callLine is a call in a line of JSON.
type callLine struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Reason    string    `json:"reason,omitzero"`
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`
	Question  string    `json:"question"`
	Resumable bool      `json:"resumable"`
	Resumes   string    `json:"resumes,omitzero"`
	ResumedBy string    `json:"resumed_by,omitzero"`
}

func (p *process) listCalls(ctx context.Context, k *kept, all, asJSON bool) error {
	list, damaged, err := k.j.Calls(ctx, journal.Filter{Resumable: !all, Limit: -1})
	if err != nil {
		return err
	}
	for _, d := range damaged {
		fmt.Fprintln(p.stderr, "ninelives: "+oneLine(d.Error()))
	}
	if asJSON {
		for _, s := range list {
			b, err := json.Marshal(callLine{s.ID, string(s.State), string(s.Reason), s.Started, s.Ended, questionOf(s), s.Resumable(), s.Resumes, s.ResumedBy}, jsontext.AllowInvalidUTF8(true))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(p.stdout, "%s\n", b); err != nil {
				return quiet(err)
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(p.stderr, "no open calls: everything that was asked was answered")
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, s := range list {
		state := string(s.State)
		if s.Reason != "" && s.Reason != ninelives.ClassUnknown && string(s.Reason) != state {
			state += " (" + string(s.Reason) + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.ID, s.Started.Format("2006-01-02 15:04:05"), state, questionOf(s))
	}
	if err := w.Flush(); err != nil {
		return quiet(err)
	}
	if !all {
		fmt.Fprintln(p.stderr, "take one up with: ninelives ask --resume ID")
	}
	return nil
}

// questionOf is what is shown of a question in a list.
func questionOf(s journal.Summary) string {
	if q := s.Labels[labelQuestion]; q != "" {
		return oneLine(q)
	}
	return oneLine(s.Title)
}

// quiet forgets that a reader has gone.
func quiet(err error) error {
	if brokenPipe(err) {
		return nil
	}
	return err
}

// showCall shows one call whole.
func (p *process) showCall(ctx context.Context, k *kept, id string) error {
	r, err := k.record(ctx, id)
	if err != nil {
		return usagef("%v: see ninelives calls --all", err)
	}
	safe := func(s string) string {
		if isTerminal(p.stdout) {
			return visible(s)
		}
		return s
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", r.ID, r.Started.Format("2006-01-02 15:04:05"), r.State)
	if r.Request != nil {
		for _, m := range r.Request.Messages {
			fmt.Fprintf(&b, "\n[%s]\n%s\n", m.Role, safe(m.Text()))
		}
	}
	if len(r.Notices) > 0 {
		fmt.Fprintf(&b, "\n[healing]\n")
		for _, n := range r.Notices {
			fmt.Fprintf(&b, "%8s  %s  %s\n", brief(n.At.Sub(r.Started)), n.Kind, oneLine(n.Text))
		}
	}
	switch o := r.Outcome; {
	case o == nil:
	case o.Response != nil && o.Response.Output != nil:
		fmt.Fprintf(&b, "\n[answer of %s]\n%s\n", o.Response.Candidate, safe(string(o.Response.Output)))
	case o.Response != nil:
		fmt.Fprintf(&b, "\n[answer of %s]\n%s\n", o.Response.Candidate, safe(o.Response.Text()+o.Response.Message.Refusal()))
	default:
		fmt.Fprintf(&b, "\n[error]\n%s\n", oneLine(o.Error))
		if f := o.Fault; f != nil && f.Partial != nil && f.Partial.Text() != "" {
			fmt.Fprintf(&b, "\n[what the last attempt left, no answer]\n%s\n", safe(f.Partial.Text()))
		}
	}
	for _, d := range r.Damaged {
		fmt.Fprintf(&b, "\n! %s\n", oneLine(d.Error()))
	}
	_, err = fmt.Fprint(p.stdout, b.String())
	return quiet(err)
}
