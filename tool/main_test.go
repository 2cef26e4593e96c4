package tool

import (
	"fmt"
	"os"
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
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
