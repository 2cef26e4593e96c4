package provider

import (
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
)

// silentCut finds out whether a server on this machine has left out part of
// the prompt without a word: it counted far fewer tokens than were sent. It
// gives a warning for the user, and the context size that the server seems to
// run with, 0 if that cannot be told.
//
// Source: wire-faults §1 "Local servers": Ollama cuts a prompt that is larger
// than its context, answers, and reports what was left.
func silentCut(c ninelives.Candidate, req *ninelives.Request, resp *ninelives.Response) (warning string, window int) {
	if !c.Local || !resp.Usage.Has(ninelives.UsageInput) {
		return "", 0
	}
	sent, counted := inputTokens(req), resp.Usage.TotalInput()
	// Our own count is an estimate that may be half as much again; below a
	// thousand tokens nothing is ever cut.
	if counted < 1000 || sent < counted*3/2 {
		return "", 0
	}
	for size := 1024; size <= 1<<20; size *= 2 {
		if counted <= size && counted > size*9/10 {
			window = size
		}
	}
	return fmt.Sprintf("the server counted %d tokens of a prompt of about %d: it has probably cut the beginning; give it a larger context", counted, sent), window
}
