package main

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ninelives-ai/ninelives/internal/nearest"
)

// deadline is the value of --deadline. One that cannot be used is a mistake
// that is told when the question is kept, not one that ends the command.
type deadline struct {
	time.Duration
	mistake error
}

func (d *deadline) Type() string { return "duration" }

func (d *deadline) String() string {
	if d.Duration == 0 {
		return ""
	}
	return d.Duration.String()
}

func (d *deadline) Set(text string) error {
	t, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil:
		*d = deadline{mistake: usagef("--deadline %q is no time: write it with its unit, such as 30s or 2m", text)}
	case t <= 0:
		*d = deadline{mistake: usagef("--deadline %s leaves no time: write one such as 30s or 2m", text)}
	default:
		*d = deadline{Duration: t}
	}
	return nil
}

// maxName bounds the name of a model.
const maxName = 200

// mistakes are what is wrong with the values of flags. A value that is empty
// is one: it comes from a variable that is not set, and going on without it
// would ask somebody else, or for something else.
func (a *asking) mistakes(cmd *cobra.Command) error {
	errs := append([]error{a.choice.deadline.mistake}, a.choice.mistakes(cmd)...)
	for _, flag := range []struct {
		name   string
		values []string
	}{{"schema", []string{a.in.schema}}, {"image", a.in.images}, {"resume", []string{a.resume}}} {
		if !cmd.Flags().Changed(flag.name) {
			continue
		}
		for _, value := range flag.values {
			if strings.TrimSpace(value) == "" {
				errs = append(errs, emptyFlag(flag.name))
				if name := "--" + flag.name; name == lostImage || name == lostSchema {
					a.in.lost = append(a.in.lost, name)
				}
			}
		}
	}
	a.in.images = slices.DeleteFunc(a.in.images, func(name string) bool { return strings.TrimSpace(name) == "" })
	return errors.Join(errs...)
}

// mistakes are what is wrong with the values that say whom to ask.
func (c *choice) mistakes(cmd *cobra.Command) (errs []error) {
	for _, flag := range []struct {
		name   string
		values []string
	}{{"model", []string{c.model}}, {"fallback", c.fallbacks}, {"preset", []string{c.preset}}, {"config", []string{c.config}}} {
		if !cmd.Flags().Changed(flag.name) {
			continue
		}
		for _, value := range flag.values {
			switch isName := flag.name == "model" || flag.name == "fallback"; {
			case strings.TrimSpace(value) == "":
				errs = append(errs, emptyFlag(flag.name))
			case isName && len(value) > maxName:
				errs = append(errs, usagef("--%s: no model has a name of %d characters", flag.name, len(value)))
			case isName && strings.ContainsFunc(value, unicode.IsControl):
				errs = append(errs, usagef("--%s %q: no model has such a name", flag.name, value))
			}
		}
	}
	return errs
}

func emptyFlag(name string) error {
	return usagef("--%s is empty: give it a value, or leave it out", name)
}

// flagWords is a mistake that the parser of flags has found, without words of
// the programming language.
func flagWords(cmd *cobra.Command, err error) error {
	text, _, _ := strings.Cut(err.Error(), ": strconv.")
	if name, unknown := strings.CutPrefix(text, "unknown flag: --"); unknown {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest.Name(name, names); near != "" {
			text += " (did you mean --" + near + "?)"
		}
	}
	return usagef("%s: see %s --help", text, cmd.CommandPath())
}
