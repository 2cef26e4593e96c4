package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/config"
)

func (p *process) keys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make the keys that clients of the gateway show",
		Long: `Make the keys that clients of the gateway show. The configuration holds their
hashes only (gateway.keys), so that whoever reads it cannot use them.`,
		Args: knownKeysCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newKey(), p.hashKey())
	return cmd
}

func knownKeysCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("there is no command %q of keys: new makes a key, hash prints the hash of one", clip(args[0], 60))
}

func (p *process) newKey() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a key, and show it this once",
		Args:  noArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			if err := nameMistake(name); err != nil {
				return err
			}
			key := freshKey()
			for _, text := range []struct {
				to   io.Writer
				line string
			}{
				{p.stderr, "The client's key, shown this once (as OPENAI_API_KEY or ANTHROPIC_API_KEY there):"},
				{p.stdout, key},
				{p.stderr, "Its line below keys: in the section gateway: of the configuration:"},
				{p.stdout, keyLine(name, key)},
			} {
				if _, err := fmt.Fprintln(text.to, text.line); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "client", "its name in logs, metrics and the journal")
	return cmd
}

func (p *process) hashKey() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "hash",
		Short: "Print the hash of the key that standard input holds",
		Args:  noArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			if err := nameMistake(name); err != nil {
				return err
			}
			if isTerminal(p.stdin) {
				fmt.Fprintln(p.stderr, "The key, then Ctrl-D:")
			}
			text, err := io.ReadAll(io.LimitReader(p.stdin, maxKey+1))
			if err != nil {
				return usagef("the key cannot be read: %v", err)
			}
			key := strings.TrimSpace(string(text))
			switch {
			case key == "":
				return usagef("standard input holds no key: echo \"$KEY\" | ninelives keys hash")
			case len(text) > maxKey:
				return usagef("standard input is longer than a key: at most %d characters", maxKey)
			case strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
				return usagef("a key is one word of plain letters, digits and signs: was something else copied with it?")
			}
			_, err = fmt.Fprintln(p.stdout, keyLine(name, key))
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "client", "its name in logs, metrics and the journal")
	return cmd
}

// maxKey bounds a key that is read.
const maxKey = 1024

// nameMistake is what is wrong with the name of a key.
func nameMistake(name string) error {
	switch {
	case name == "":
		return emptyFlag("name")
	case len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return usagef("--name: a key's name is one word of at most %d characters, such as laptop", maxName)
	}
	return nil
}

// freshKey is a key of 256 random bits.
func freshKey() string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	return "nl-" + base64.RawURLEncoding.EncodeToString(random)
}

// keyLine is a key as the configuration has it.
func keyLine(name, key string) string {
	return fmt.Sprintf("- { name: '%s', hash: '%s' }", strings.ReplaceAll(name, "'", "''"), config.HashOfKey(key))
}
