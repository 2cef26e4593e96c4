package mcp

import (
	"os"
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
