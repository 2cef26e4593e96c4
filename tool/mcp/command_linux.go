package mcp

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// separate puts the command into a process group of its own, which dies with
// the thread that starts it, and so with this process.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the command has exited, but leaves it to be waited
// for: until then its process group cannot be anybody else's.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

func askGroup(cmd *exec.Cmd)  { syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
