package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/cmd/ninelives/tui"
	"github.com/ninelives-ai/ninelives/journal"
)

// terminal is the agent in the terminal: a new session, or the one of an id.
func (p *process) terminal(ctx context.Context, w *work, id string) error {
	out, is := p.stdout.(*os.File)
	if !is || !isTerminal(p.stdin) || !isTerminal(out) {
		return usagef("the agent needs a terminal: without one use ninelives run \"…\" (ninelives --help lists everything)")
	}
	kept := p.openJournal("conversation")
	defer kept.close()
	asker := tui.NewAsker()
	w.remember = true
	shop, err := w.open(ctx, p, kept, nil, agent.Approve(asker.Approve), agent.GrantMore(asker.GrantMore))
	if err != nil {
		return err
	}
	defer shop.close()
	var session *agent.Session
	if id == "" {
		session, err = shop.agent.Open(ctx)
	} else {
		session, err = shop.resume(ctx, id)
	}
	if err != nil {
		return err
	}
	state, err := p.statePath()
	if err != nil {
		return err
	}
	recollecting, stop := context.WithCancel(ctx)
	recollected := make(chan struct{})
	go func() { // what it cannot read is left for another time
		defer close(recollected)
		_ = shop.agent.Recollect(recollecting)
	}()
	defer func() { stop(); <-recollected }()
	left, err := tui.Run(ctx, tui.Config{
		Session: session,
		New:     func(ctx context.Context) (tui.Session, error) { return shop.agent.Open(ctx) },
		Resume:  func(ctx context.Context, id string) (tui.Session, error) { return shop.resume(ctx, id) },
		Sessions: func(ctx context.Context) ([]tui.Listed, error) {
			return listed(ctx, kept, shop.directory)
		},
		Switch:      shop.swap,
		Models:      shop.modelNames(),
		Permissions: func(context.Context) (string, error) { return shop.permissionsText(), nil },
		Memory:      func(context.Context) (string, error) { return shop.memoryText() },
		MCP:         func(context.Context) (string, error) { return shop.serversText(), nil },
		Asker:       asker,
		Directory:   shop.directory,
		History:     filepath.Join(state, "history"),
		Notices:     shop.notices(),
		In:          p.stdin,
		Out:         out,
	})
	if left != "" && kept.j != nil {
		fmt.Fprintln(p.stderr, "go on with: ninelives resume "+left)
	}
	return err
}

// notices are what is said before anything else.
func (s *shop) notices() []string {
	var lines []string
	for _, w := range s.warnings {
		lines = append(lines, "! "+oneLine(w))
	}
	if s.chain.simulated {
		lines = append(lines, strings.ReplaceAll(simulatedCoder, "\n", " "))
	}
	return append(lines, "asking "+oneLine(s.chain.plan()))
}

// resume takes a session up, with words for what can be wrong.
func (s *shop) resume(ctx context.Context, id string) (*agent.Session, error) {
	session, err := s.agent.Resume(ctx, id)
	switch {
	case errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrAmbiguous):
		return nil, usagef("%v: see ninelives sessions", err)
	case errors.Is(err, journal.ErrTaken):
		return nil, usagef("%v", err)
	}
	return session, err
}

// listed are the sessions of the directory.
func listed(ctx context.Context, kept *kept, dir string) ([]tui.Listed, error) {
	if kept.j == nil {
		return nil, kept.err
	}
	list, _, err := kept.j.Sessions(ctx, journal.SessionFilter{Labels: map[string]string{labelDirectory: dir}, Without: []string{agent.LabelCall}})
	var out []tui.Listed
	for _, s := range slices.DeleteFunc(list, func(s journal.SessionSummary) bool { return !begun(s) }) {
		out = append(out, tui.Listed{ID: s.ID, Title: s.Title, Note: s.Updated.Format("2006-01-02 15:04") + " · " + stateWords(s)})
	}
	return out, err
}

// modelNames are what /model offers: the chain and the presets of the configuration.
func (s *shop) modelNames() []string {
	return append(s.chain.names(), slices.Sorted(maps.Keys(s.chain.config.Presets))...)
}

// permissionsText says what the configuration and the flags let be done without asking.
func (s *shop) permissionsText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "profile %s", s.settings.Permissions.Profile)
	for _, r := range s.settings.Permissions.Rules {
		fmt.Fprintf(&b, "\n%s %s", r.Action, oneLine(r.Tool))
		if r.Target != "" {
			fmt.Fprintf(&b, "(%s)", oneLine(r.Target))
		}
	}
	return b.String()
}

// memoryText says what is remembered, and where.
func (s *shop) memoryText() (string, error) {
	home, _ := s.p.env("HOME")
	text, files, err := agent.Instructions(s.directory, home, s.settings.Memory)
	if s.memory != nil {
		if problem := s.memory.Problem(); problem != "" {
			text += "\n\n! " + problem
		}
	}
	if len(files) == 0 {
		return "nothing is remembered and no instructions were found (AGENTS.md, .ninelives/MEMORY.md)", err
	}
	return "from " + strings.Join(files, ", ") + "\n\n" + text, err
}

// serversText says how the servers of the Model Context Protocol stand.
func (s *shop) serversText() string {
	if s.servers == nil {
		return "no servers are configured (agent.mcpServers in the configuration)"
	}
	var b strings.Builder
	for _, st := range s.servers.Status() {
		fmt.Fprintf(&b, "%s: %s, %s", st.Name, st.State, plural(st.Tools, "tool"))
		if st.Error != "" {
			b.WriteString(" – " + oneLine(st.Error))
		}
		if !st.Next.IsZero() {
			b.WriteString(", tried again at " + st.Next.Format(time.TimeOnly))
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}

func (p *process) resumeCommand() *cobra.Command {
	w := &work{}
	cmd := &cobra.Command{
		Use:   "resume [id]",
		Short: "Open a session again in the terminal; without an id the last one of this directory",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("ninelives resume takes one id")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.mistakes(cmd); err != nil {
				return err
			}
			id := ""
			if len(args) == 1 {
				id = args[0]
			} else {
				kept := p.openJournal("conversation")
				defer kept.close()
				if kept.j == nil {
					return &usageError{kept.err}
				}
				dir, err := workDirectory()
				if err != nil {
					return err
				}
				if id, err = lastSession(cmd.Context(), kept, dir); err != nil {
					return err
				}
				if id == "" {
					return usagef("there is no session of this directory yet: ninelives begins one")
				}
			}
			return p.terminal(cmd.Context(), w, id)
		},
	}
	w.flags(cmd)
	return cmd
}
