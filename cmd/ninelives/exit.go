package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// The exit codes; docs/cli.md lists them for users.
const (
	exitOK          = 0
	exitInternal    = 1
	exitUsage       = 2
	exitAuth        = 3
	exitBilling     = 4
	exitUnavailable = 5
	exitRefused     = 6
	exitTruncated   = 7
	exitEmpty       = 8
	exitLimit       = 9
	exitLoop        = 10
	exitDenied      = 11
	exitOverflow    = 12
	exitDeadline    = 124
	exitCancelled   = 130
)

// usageError is a mistake in what was typed or in a file that it names.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// ended is the end of a command that has said all there is to say.
type ended struct{ code int }

func (e *ended) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// exitCode gives the exit code of an error.
func exitCode(err error) int {
	var done *ended
	var usage *usageError
	var key *provider.KeyError
	var exhausted *heal.Exhausted
	var fault *ninelives.Fault
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &done):
		return done.code
	case errors.As(err, &key):
		return exitAuth
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &exhausted):
		return exhaustedCode(exhausted)
	case errors.Is(err, context.Canceled):
		return exitCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return exitDeadline
	case errors.As(err, &fault):
		return classCode(fault.Class)
	}
	return exitInternal
}

// exhaustedCode: where one of the candidates may come back, trying again can
// help, whatever the others lack.
func exhaustedCode(e *heal.Exhausted) int {
	if e.Deadline {
		return exitDeadline
	}
	for _, t := range e.Trail {
		if classCode(t.Class) == exitUnavailable {
			return exitUnavailable
		}
	}
	if e.Fault == nil {
		return exitUnavailable
	}
	return classCode(e.Fault.Class)
}

func classCode(c ninelives.Class) int {
	switch c {
	case ninelives.ClassAuth:
		return exitAuth
	case ninelives.ClassBilling:
		return exitBilling
	case ninelives.ClassModelNotFound, ninelives.ClassFormat:
		return exitUsage
	case ninelives.ClassContextLength:
		return exitOverflow
	case ninelives.ClassRefusal, ninelives.ClassContentFilter:
		return exitRefused
	case ninelives.ClassTruncated:
		return exitTruncated
	case ninelives.ClassEmpty:
		return exitEmpty
	case ninelives.ClassCanceled:
		return exitCancelled
	}
	return exitUnavailable
}

// answerCode gives the exit code of an answer.
func answerCode(r *ninelives.Response) int {
	switch r.Finish {
	case ninelives.FinishLength:
		return exitTruncated
	case ninelives.FinishRefusal, ninelives.FinishContentFilter:
		return exitRefused
	}
	if r.Message.Refusal() != "" {
		return exitRefused
	}
	return exitOK
}

// describe says an error in one line; empty where all was said before.
func describe(err error) string {
	var done *ended
	if errors.As(err, &done) {
		return ""
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, errReaderGone) {
		var unkept *unkeptError
		if errors.As(err, &unkept) {
			return "stopped; " + oneLine(unkept.Error())
		}
		return "stopped"
	}
	text := strings.TrimPrefix(strings.TrimSpace(err.Error()), "provider: ")
	return oneLine(strings.NewReplacer(".\n", ". ", "\n", "; ").Replace(text))
}

// brokenPipe reports that the reader of an output has gone.
func brokenPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, fs.ErrClosed)
}
