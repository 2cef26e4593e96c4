package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/chaos"
)

func (p *process) sim() *cobra.Command {
	var listen string
	var scripts []string
	var list, anywhere bool
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the simulated provider that misbehaves on purpose",
		Long: `Run the simulated provider that misbehaves on purpose.

It speaks OpenAI chat/completions and Responses, Anthropic Messages and Gemini.
The model name says what goes wrong: point any client at it and ask for the
model "cut", "flaky-429" or "stall". See docs/chaos.md.`,
		Example: `  ninelives sim
  ninelives sim --script my-faults.yaml --listen 127.0.0.1:0
  curl -N http://127.0.0.1:9010/v1/chat/completions -d '{"model":"cut","stream":true,"messages":[{"role":"user","content":"Hi"}]}'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			srv := chaos.New()
			defer srv.Close()
			known := chaos.Catalogue()
			for _, path := range scripts {
				scenarios, err := chaos.Load(path)
				if err != nil {
					return usagef("--script %v", err)
				}
				if err := srv.Add(scenarios...); err != nil {
					return usagef("--script %s: %v", path, err)
				}
				known = append(known, scenarios...)
			}
			if list {
				return p.listScenarios(known)
			}
			return p.simulate(cmd.Context(), srv, listen, anywhere)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9010", "address and port; port 0 takes a free one")
	cmd.Flags().StringArrayVar(&scripts, "script", nil, "file of further scenarios (repeatable)")
	cmd.Flags().BoolVar(&list, "list", false, "list the scenarios and stop")
	cmd.Flags().BoolVar(&anywhere, "anywhere", false, "allow an address that other machines can reach")
	return cmd
}

func (p *process) listScenarios(known []chaos.Scenario) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, sc := range known {
		fmt.Fprintf(w, "%s\t%s\n", sc.Name, oneLine(sc.About))
	}
	return quiet(w.Flush())
}

// simulate serves until the context ends.
func (p *process) simulate(ctx context.Context, srv *chaos.Server, listen string, anywhere bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("--listen %q is no address: write it like 127.0.0.1:9010", listen)
	}
	if !loopback(host) && !anywhere {
		return usagef("--listen %s can be reached from other machines, and the simulator asks nobody for a key: use 127.0.0.1, or add --anywhere", listen)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return usagef("--listen %s: %s", listen, listenWords(err))
	}
	server := &http.Server{Handler: srv, ReadHeaderTimeout: 10 * time.Second}
	url := "http://" + l.Addr().String()
	fmt.Fprintf(p.stdout, "simulator on %s (no model answers here)\n\n", url)
	fmt.Fprintf(p.stdout, "  export OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=sim\n", url)
	fmt.Fprintf(p.stdout, "  export ANTHROPIC_BASE_URL=%s ANTHROPIC_API_KEY=sim\n\n", url)
	fmt.Fprintf(p.stdout, "then ask for the model ok, flaky-429, cut, stall, … (ninelives sim --list)\n")
	fmt.Fprintf(p.stdout, "request log: %s/control/log\n", url)
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenWords says why nobody can listen there.
func listenWords(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "something listens there already, maybe another simulator: --listen 127.0.0.1:0 takes a free port"
	case errors.Is(err, fs.ErrPermission):
		return "this port is reserved: take one above 1023"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
