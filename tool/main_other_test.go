//go:build !unix

package tool

func agentThatIsKilled([]string) int { return 2 }
