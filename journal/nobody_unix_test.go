//go:build unix

package journal

import (
	"os/exec"
	"syscall"
)

// nobody makes the process run without the rights of root.
func nobody(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}
