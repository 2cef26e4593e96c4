package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/journal"
)

func (p *process) sessions() *cobra.Command {
	var all, subagents, asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions [id]",
		Short: "List the sessions of this directory, or show one",
		Long: `List the sessions of this directory. With an id, show that session: what was
said, what was done, how each turn ended. With --json its record is written,
one entry a line.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("ninelives sessions takes one id")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			k := p.openJournal("session")
			defer k.close()
			if k.j == nil {
				return &usageError{k.err}
			}
			if len(args) == 1 {
				return p.showSession(cmd.Context(), k, args[0], asJSON)
			}
			return p.listSessions(cmd.Context(), k, all, subagents, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list those of other directories too")
	cmd.Flags().BoolVar(&subagents, "subagents", false, "list those of subagents too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	return cmd
}

// sessionLine is a session in a line of JSON.
type sessionLine struct {
	ID        string    `json:"id"`
	Directory string    `json:"directory,omitzero"`
	Parent    string    `json:"parent,omitzero"` // the session that began it
	Title     string    `json:"title,omitzero"`
	State     string    `json:"state"`
	Running   bool      `json:"running"`
	Started   time.Time `json:"started"`
	Updated   time.Time `json:"updated"`
	Entries   int       `json:"entries"`
}

// labelDirectory is the label of the directory that a session works in.
const labelDirectory = "directory"

func (p *process) listSessions(ctx context.Context, k *kept, all, subagents, asJSON bool) error {
	filter := journal.SessionFilter{Limit: -1}
	if !subagents {
		filter.Without = []string{agent.LabelCall}
	}
	if !all {
		dir, err := workDirectory()
		if err != nil {
			return err
		}
		filter.Labels = map[string]string{labelDirectory: dir}
	}
	list, damaged, err := k.j.Sessions(ctx, filter)
	if err != nil {
		return err
	}
	p.tellDamage(damaged)
	list = slices.DeleteFunc(list, func(s journal.SessionSummary) bool { return !s.Running && !begun(s) })
	if asJSON {
		for _, s := range list {
			err := p.jsonLine(sessionLine{s.ID, s.Labels[labelDirectory], s.Labels["parent"], s.Title, s.State, s.Running, s.Started, s.Updated, s.Entries})
			if err != nil {
				return quiet(err)
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(p.stderr, "no sessions here yet: ninelives begins one (--all lists those of other directories)")
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", s.ID, s.Updated.Format("2006-01-02 15:04:05"), stateWords(s), oneLine(s.Title))
		if all {
			fmt.Fprintf(w, "\t%s", oneLine(s.Labels[labelDirectory]))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return quiet(err)
	}
	fmt.Fprintln(p.stderr, "open one with: ninelives resume ID")
	return nil
}

// begun reports whether something was said in a session: whoever only looked
// in has left nothing to go on with.
func begun(s journal.SessionSummary) bool { return s.Title != "" }

// stateWords say how a session stands.
func stateWords(s journal.SessionSummary) string {
	switch {
	case s.Running:
		return "open elsewhere"
	case s.State == "running": // and its process is not
		return string(agent.ReasonInterrupted)
	}
	return oneLine(s.State)
}

func (p *process) tellDamage(damaged []journal.Damage) {
	for _, d := range damaged {
		fmt.Fprintln(p.stderr, "ninelives: "+oneLine(d.Error()))
	}
}

func (p *process) jsonLine(v any) error {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", b)
	return err
}

// entryLine is an entry of a session in a line of JSON.
type entryLine struct {
	Seq  int64          `json:"seq"`
	At   time.Time      `json:"at"`
	Kind string         `json:"kind"`
	Data jsontext.Value `json:"data"`
}

func (p *process) showSession(ctx context.Context, k *kept, id string, asJSON bool) error {
	s, entries, damaged, err := k.j.ReadSession(ctx, id)
	if err != nil {
		return usagef("%v: see ninelives sessions --all", err)
	}
	p.tellDamage(damaged)
	if asJSON {
		for _, e := range entries {
			if err := p.jsonLine(entryLine{e.Seq, e.At, e.Kind, jsonValue(e.Data)}); err != nil {
				return quiet(err)
			}
		}
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", s.ID, s.Started.Format("2006-01-02 15:04:05"), oneLine(s.State))
	writeTranscript(&b, entries)
	writeWaiting(&b, s, entries)
	text := b.String()
	if isTerminal(p.stdout) {
		text = visible(text)
	}
	_, err = io.WriteString(p.stdout, text)
	return quiet(err)
}

// writeWaiting says which messages no turn has taken up.
func writeWaiting(b *strings.Builder, s journal.SessionSummary, entries []journal.Entry) {
	waiting := 0
	for _, in := range agent.StateOf(entries).Waiting() {
		if !in.Note {
			waiting++
		}
	}
	if waiting == 0 {
		return
	}
	words := plural(waiting, "message") + " above not taken up yet"
	if !s.Running {
		words += "; go on with: ninelives run --resume " + s.ID
	}
	fmt.Fprintf(b, "\n! %s\n", words)
}

// writeTranscript writes a session for people, as Markdown.
func writeTranscript(b *strings.Builder, entries []journal.Entry) {
	for _, raw := range entries {
		entry, err := agent.Decode(raw)
		if err != nil {
			fmt.Fprintf(b, "\n! %s\n", oneLine(err.Error()))
			continue
		}
		switch e := entry.(type) {
		case agent.Opening:
			fmt.Fprintf(b, "%s\n", e.Directory)
		case agent.Input:
			who := "you"
			if e.Note {
				who = "note"
			} else if e.Via != agent.ViaTurn {
				who += ", " + string(e.Via)
			}
			fmt.Fprintf(b, "\n## %s\n\n%s\n", who, e.Message.Text())
		case agent.Answer:
			if e.Purpose != agent.PurposeStep && e.Purpose != agent.PurposeFinal {
				continue
			}
			if text := e.Message.Text() + e.Message.Refusal(); text != "" {
				fmt.Fprintf(b, "\n## %s\n\n%s\n", e.Candidate, text)
			}
		case agent.Intent:
			fmt.Fprintf(b, "\n→ %s %s\n", e.Name, clip(string(e.Arguments), 200))
		case agent.Effect:
			switch {
			case e.Unknown:
				fmt.Fprintf(b, "? %s: nobody can say whether it had its effect\n", e.Name)
			case e.Result.IsError:
				fmt.Fprintf(b, "✗ %s: %s\n", e.Name, clip(e.Result.Text(), 200))
			case e.Summary != "":
				fmt.Fprintf(b, "✓ %s\n", oneLine(e.Summary))
			}
			if e.Diff != "" {
				fmt.Fprintf(b, "\n```diff\n%s\n```\n", strings.TrimRight(e.Diff, "\n"))
			}
		case agent.Healing:
			for _, n := range e.Notices {
				fmt.Fprintf(b, "· %s: %s\n", n.Kind, oneLine(n.Text))
			}
		case agent.Compaction:
			fmt.Fprintf(b, "~ %s\n", compactionWords(e))
		case agent.Undo:
			what := "undone"
			if e.Redo {
				what = "done again"
			}
			fmt.Fprintf(b, "\n↶ the file changes of turn %d were %s (%s)\n", e.Turn, what, plural(len(e.Changes), "file"))
		case agent.Rewind:
			fmt.Fprintf(b, "\n↶ forgotten from turn %d on\n", e.Turn)
		case agent.End:
			mark, words := "✓", "complete"
			if e.Reason != agent.ReasonComplete {
				mark, words = "✗", endWords(e)
			}
			failed := ""
			if e.FailedTurn {
				failed = " (failedTurn)"
			}
			fmt.Fprintf(b, "\n%s turn %d: %s%s\n", mark, e.Turn, oneLine(words), failed)
		}
	}
}

func (p *process) replay() *cobra.Command {
	return &cobra.Command{
		Use:   "replay ID",
		Short: "Decide a recorded session again, offline, and compare",
		Long: `Ask the decider again at every recorded point of a session, without a model, a
tool or a network, and compare with what was decided then. The exit code is 1
where they differ, or cannot be compared because the record is damaged.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("ninelives replay takes the id of a session: see ninelives sessions")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			k := p.openJournal("session")
			defer k.close()
			if k.j == nil {
				return &usageError{k.err}
			}
			_, entries, damaged, err := k.j.ReadSession(cmd.Context(), args[0])
			if err != nil {
				return usagef("%v: see ninelives sessions --all", err)
			}
			p.tellDamage(damaged)
			return p.replayEntries(entries)
		},
	}
}

// replayEntries compares and tells.
func (p *process) replayEntries(entries []journal.Entry) error {
	list, err := agent.Replay(entries)
	differ, lost := 0, 0
	for _, r := range list {
		mark, note := "=", ""
		switch {
		case r.Agrees:
		case r.Gap:
			lost++
			mark, note = "?", "   the record has a gap before it"
		default:
			differ++
			mark, note = "≠", "   now: "+oneLine(r.Decided)
		}
		if _, err := fmt.Fprintf(p.stdout, "%s turn %d, entry %d: %s%s\n", mark, r.Turn, r.Seq, oneLine(r.Recorded), note); err != nil {
			return quiet(err)
		}
	}
	if err != nil {
		return err
	}
	switch {
	case len(list) == 0:
		fmt.Fprintln(p.stderr, "nothing was decided in this session yet")
	case differ+lost == 0:
		fmt.Fprintf(p.stderr, "%s, all as they were\n", plural(len(list), "decision"))
		return nil
	}
	if differ > 0 {
		fmt.Fprintf(p.stderr, "ninelives: %d of %s are different now\n", differ, plural(len(list), "decision"))
	}
	if lost > 0 {
		fmt.Fprintf(p.stderr, "ninelives: %d of %s cannot be compared: the record has a gap before them\n", lost, plural(len(list), "decision"))
	}
	if differ+lost > 0 {
		return &ended{exitInternal}
	}
	return nil
}
