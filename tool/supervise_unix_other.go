//go:build unix && !linux

package tool

import (
	"os"
	"syscall"
)

func ownProgram() (string, error) { return os.Executable() }

// Elsewhere orphans go to the first process of the machine. The session of the
// command is what can be reached.
func adoptOrphans() {}

func dieWithParent(*syscall.SysProcAttr) {}

func descendants(pid int) []int {
	if syscall.Kill(-pid, 0) == nil {
		return []int{pid}
	}
	return nil
}
