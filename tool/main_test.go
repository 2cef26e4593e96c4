package tool

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// superviseArgument makes the test binary a supervisor, as the agent's own is.
const superviseArgument = "__supervise"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case superviseArgument:
			os.Exit(Supervise(os.Args[2:]))
		case "__agent":
			os.Exit(agentThatIsKilled(os.Args[2:]))
		}
	}
	// In the background of a script Ctrl-C is ignored, and so it would be by
	// everything that is started here.
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	usualMask()
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
