//go:build unix && !linux

package mcp

import (
	"os/exec"
	"syscall"
)

// separate puts the command into a process group of its own. If this process
// is killed, the command finds its input closed.
func separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits for the command and reaps it.
func awaitExit(cmd *exec.Cmd) { cmd.Process.Wait() }

func askGroup(cmd *exec.Cmd)  { syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
