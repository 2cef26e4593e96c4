//go:build !unix

package mcp

import "os/exec"

// separate, askGroup and killGroup know no groups here: a command that starts
// others has to end them itself when its input is closed.
func separate(*exec.Cmd)      {}
func awaitExit(cmd *exec.Cmd) { cmd.Process.Wait() }
func askGroup(*exec.Cmd)      {}
func killGroup(cmd *exec.Cmd) { cmd.Process.Kill() }
