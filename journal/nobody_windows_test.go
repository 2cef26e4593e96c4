package journal

import "os/exec"

func nobody(*exec.Cmd) {}
