package tool

import (
	"os"
	"testing"
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
	os.Exit(m.Run())
}
