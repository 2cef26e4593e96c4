//go:build !unix

package tool

import (
	"testing"
	"time"
)

func agentThatIsKilled([]string) int { return 2 }

func usualMask() {}

// worked is the time since the process began, where nobody tells how much of
// it was its own.
func worked(*testing.T) time.Duration { return time.Since(began) }

var began = time.Now()
