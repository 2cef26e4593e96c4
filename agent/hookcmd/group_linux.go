package hookcmd

import "syscall"

// attributes let a program die with this process, even if that is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
