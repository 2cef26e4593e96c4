// Command ninelives makes LLM calls that land on their feet.
//
//	main.go     the process: signals, the root command, the exit code
//	ask.go      ask: one healed call
//	flags.go    what flags hold
//	input.go    what is asked: arguments, standard input, images
//	schema.go   the schema that the answer must satisfy
//	file.go     files that flags name
//	chain.go    who is asked: flags, configuration, environment, simulator
//	demo.go     the built-in simulator and how it misbehaves
//	show.go     the answer and the healing log, for people
//	lines.go    the same as JSON lines, for programs
//	screen.go   what may reach a terminal
//	exit.go     exit codes
//	kept.go     the journal as the commands use it
//	calls.go    calls: what was asked and not answered
//	run.go      run: a task without a terminal; runshow.go and runlines.go tell it
//	terminal.go the agent in the terminal (package tui), resume
//	work.go     an agent with everything that it works with
//	telemetry.go what the environment's collector is told of it
//	sessions.go sessions, replay
//	acp.go      acp: the agent for editors (package acp)
//	trust.go    trust: what a project's configuration may set
//	check.go    check: what the configuration comes to (check_show.go writes it,
//	            check_policy.go compares policies, check_live.go asks)
//	keys.go     keys: those that the gateway's clients show
//	sim.go      sim: the simulator as a server
//	launch.go   launch: a client that asks the gateway; launch_clients.go has the clients
//	version.go  version
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

func main() {
	if forSupervisor() {
		os.Exit(tool.Supervise(os.Args[2:]))
	}
	os.Exit(run())
}

// run is main with an exit code.
func run() int {
	// A reader that goes away is an error of one write (EPIPE), not the end of
	// the process: the journal has to be told.
	signal.Ignore(syscall.SIGPIPE)
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		stops = append(stops, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), stops...)
	go func() { // the second Ctrl-C does not wait for anything
		<-ctx.Done()
		stop()
	}()
	p := &process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}
	err := p.root().ExecuteContext(ctx)
	stop()
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if text := describe(err); text != "" {
		fmt.Fprintln(p.stderr, "ninelives: "+text)
	}
	return code
}

// process is what the commands share: the world outside.
type process struct {
	stdin  *os.File
	stdout io.Writer
	stderr io.Writer
	env    provider.Env
}

func (p *process) root() *cobra.Command {
	w := &work{}
	root := &cobra.Command{
		Use:           "ninelives",
		Short:         "LLM calls and agents that land on their feet",
		Long:          "Without a command: the coding agent, in this terminal and this directory.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       buildVersion(),
		Args:          knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.mistakes(cmd); err != nil {
				return err
			}
			return p.terminal(cmd.Context(), w, "")
		},
	}
	w.flags(root)
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetFlagErrorFunc(flagWords)
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root {
				if err := knownCommand(root, args); err != nil {
					return err
				}
				cmd, rest = root, nil
			}
			if len(rest) > 0 {
				return knownCommand(cmd, rest)
			}
			return cmd.Help()
		},
	})
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(p.ask(), p.run(), p.resumeCommand(), p.sessions(), p.replay(), p.acp(), p.trust(), p.calls(), p.serve(), p.check(), p.keys(), p.sim(), p.launch(p.startGateway), p.version())
	return root
}

// knownCommand refuses a command that there is not.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if strings.ContainsAny(args[0], " \t\n") { // a task
		return usagef("there is no command %q: for a task write ninelives run \"…\"", clip(args[0], 60))
	}
	var names []string
	for _, c := range cmd.Root().Commands() {
		names = append(names, c.Name())
	}
	return usagef("there is no command %q%s: see ninelives --help", args[0], nearest.Hint(args[0], names))
}
