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
//	sim.go      sim: the simulator as a server
//	version.go  version
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/provider"
)

func main() { os.Exit(run()) }

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
	root := &cobra.Command{
		Use:           "ninelives",
		Short:         "LLM calls that land on their feet",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       buildVersion(),
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
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
	root.AddCommand(p.ask(), p.calls(), p.sim(), p.version())
	return root
}

// knownCommand refuses a command that there is not.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("there is no command %q: see ninelives --help", args[0])
	}
	return nil
}
