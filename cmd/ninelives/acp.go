package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/cmd/ninelives/acp"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool/mcp"
)

func (p *process) acp() *cobra.Command {
	w := &work{}
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "The agent for editors: the Agent Client Protocol on standard input and output",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("ninelives acp takes no arguments: an editor speaks with it (docs/editors.md)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.mistakes(cmd); err != nil {
				return err
			}
			if isTerminal(p.stdin) {
				return usagef("ninelives acp is for editors, which speak with it over standard input and output (docs/editors.md); in a terminal use ninelives")
			}
			kept := p.openJournal("conversation")
			defer kept.close()
			return acp.Serve(cmd.Context(), p.stdin, p.stdout, p.acpConfig(kept, w))
		},
	}
	w.flags(cmd)
	return cmd
}

func (p *process) acpConfig(kept *kept, w *work) acp.Config {
	c := acp.Config{Version: buildVersion(), Images: true}
	c.Open = func(ctx context.Context, o acp.Opening) (acp.Handle, error) {
		return p.acpHandle(ctx, kept, w, o, "")
	}
	if kept.j == nil {
		return c
	}
	c.Resume = func(ctx context.Context, id string, o acp.Opening) (acp.Handle, error) {
		return p.acpHandle(ctx, kept, w, o, id)
	}
	c.Sessions = func(ctx context.Context, dir string) ([]acp.Listed, error) {
		filter := journal.SessionFilter{Limit: -1, Without: []string{agent.LabelCall}}
		if dir != "" {
			filter.Labels = map[string]string{labelDirectory: dir}
		}
		list, _, err := kept.j.Sessions(ctx, filter)
		var out []acp.Listed
		for _, s := range list {
			out = append(out, acp.Listed{ID: s.ID, Directory: s.Labels[labelDirectory], Title: s.Title, Updated: s.Updated})
		}
		return out, err
	}
	return c
}

// acpHandle opens an agent of its own for an editor's session, so that nothing
// of one session touches another.
func (p *process) acpHandle(ctx context.Context, kept *kept, w *work, o acp.Opening, id string) (_ acp.Handle, err error) {
	own := *w
	own.remember = true
	if own.choice.dir, err = filepath.EvalSymlinks(o.Directory); err != nil {
		return acp.Handle{}, usagef("the directory %s cannot be used: %v", o.Directory, err)
	}
	for _, s := range o.Servers {
		server := mcp.Server{Name: s.Name, Env: s.Env, Dir: own.choice.dir, URL: s.URL, Headers: s.Headers}
		if s.Command != "" {
			server.Command = append([]string{s.Command}, s.Args...)
		}
		own.servers = append(own.servers, server)
	}
	shop, err := own.open(ctx, p, kept, nil, agent.Approve(o.Approve))
	if err != nil {
		return acp.Handle{}, err
	}
	var session *agent.Session
	if id == "" {
		session, err = shop.agent.Open(ctx)
	} else {
		session, err = shop.agent.Resume(ctx, id)
	}
	if err != nil {
		shop.close()
		if errors.Is(err, journal.ErrUnknown) {
			err = errors.Join(acp.ErrNoSession, err)
		}
		return acp.Handle{}, err
	}
	h := acp.Handle{
		Session: session,
		Model:   shop.chain.names()[0],
		Notices: shop.notices(),
		Switch: func(ctx context.Context, id string) error {
			_, _, err := shop.swap(ctx, id)
			return err
		},
		Close: func() error { shop.close(); return nil },
	}
	names := shop.modelNames()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		h.Models = append(h.Models, acp.Model{ID: name, Name: name})
	}
	if kept.j != nil {
		h.History = func(ctx context.Context) ([]agent.Entry, error) {
			_, raw, _, err := kept.j.ReadSession(ctx, session.ID())
			var entries []agent.Entry
			for _, r := range raw {
				if e, err := agent.Decode(r); err == nil {
					entries = append(entries, e)
				}
			}
			return entries, err
		}
	}
	return h, nil
}
