//go:build unix

package hookcmd

import (
	"os"
	"os/exec"
	"syscall"
)

// group gives a program a process group of its own.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = attributes() }

// kill ends a program and all that is in its group.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
