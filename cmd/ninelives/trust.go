package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/config"
)

func (p *process) trust() *cobra.Command {
	var yes, remove bool
	cmd := &cobra.Command{
		Use:   "trust [file]",
		Short: "Let this project's ninelives.yaml set permissions, hooks, servers and keys",
		Long: `A project's ninelives.yaml comes with what was cloned. What it says of
permissions, hooks, servers, addresses, keys and the like is left out until you
trust it, as it is now: a later change asks again. Shows the file, and asks.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("ninelives trust takes one file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "ninelives.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			path, err := filepath.Abs(path)
			if err != nil {
				return usagef("%v", err)
			}
			if remove {
				if err := config.Distrust(path, p.env); err != nil {
					return &usageError{err}
				}
				fmt.Fprintln(p.stderr, oneLine(path)+" is not trusted")
				return nil
			}
			return p.trustFile(path, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&remove, "remove", false, "take the trust back")
	return cmd
}

// trustFile shows the file and trusts what was shown.
func (p *process) trustFile(path string, yes bool) error {
	if !config.IsProject(path) {
		return usagef("%s is no project's file: only a ninelives.yaml needs trust", path)
	}
	text, err := config.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("%s does not exist: there is nothing to trust", path)
	}
	if err != nil {
		return &usageError{err}
	}
	if config.IsTrusted(path, text, p.env) {
		fmt.Fprintln(p.stderr, oneLine(path)+" is trusted already")
		return nil
	}
	if !yes {
		if !isTerminal(p.stdin) || !isTerminal(p.stderr) {
			return usagef("nobody can be asked here: look at %s, then say --yes", path)
		}
		fmt.Fprintf(p.stderr, "%s\n\nTrust %s, as it stands above? [y/N] ", visible(string(text)), oneLine(path))
		var answer string
		if _, err := fmt.Fscanln(p.stdin, &answer); err != nil || answer != "y" && answer != "Y" && answer != "yes" {
			fmt.Fprintln(p.stderr, "not trusted")
			return &ended{exitDenied}
		}
	}
	if err := config.Trust(path, text, p.env); err != nil {
		return &usageError{err}
	}
	fmt.Fprintln(p.stderr, oneLine(path)+" is trusted until it changes")
	return nil
}

// forSupervisor reports that the process was started as the supervisor of an
// agent's commands, by the argument that only the agent gives.
func forSupervisor() bool { return len(os.Args) > 1 && os.Args[1] == supervisorArgument }

const supervisorArgument = "supervise-command"
