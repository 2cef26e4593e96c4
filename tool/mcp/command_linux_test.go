package mcp

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alive reports whether a process is there and no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// What a server has started ends with it, also when it does not want to end.
func TestNothingIsLeftBehind(t *testing.T) {
	tm := quick
	tm.leave = 20 * time.Millisecond
	for _, word := range []string{"a server", "ignores its end"} {
		s := begin(t, tm, acting(t, word))
		child, err1 := strconv.Atoi(call(t, s, "test__spawn", "").Text())
		self, err2 := strconv.Atoi(call(t, s, "test__pid", "").Text())
		if err1 != nil || err2 != nil || !alive(child) || !alive(self) {
			t.Fatalf("%s: %v %v", word, err1, err2)
		}
		s.Close()
		for late := time.Now().Add(30 * time.Second); alive(child) || alive(self); time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%s: child %v, server %v are alive", word, alive(child), alive(self))
			}
		}
	}
}

// If this process is killed, its servers die with it, also those that would
// not end when their input is closed.
func TestServersDieWithTheirParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(self)
	agent.Env = append(os.Environ(), actAs+"=an agent")
	agent.Stderr = os.Stderr
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	server, convErr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || convErr != nil || !alive(server) {
		t.Fatalf("%q %v %v", line, err, convErr)
	}
	agent.Process.Kill()
	agent.Wait()
	for late := time.Now().Add(30 * time.Second); alive(server); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the server is alive")
		}
	}
}
