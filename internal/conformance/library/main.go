// Library is a program that imports the library and nothing else, as a user's
// would. A test holds what it links: see TestLibraryStaysSmall.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

func main() {
	claude, err := provider.Open("anthropic/claude-sonnet-4-6")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	gpt, err := provider.Open("openai/gpt-5.4")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	model := heal.New(claude, heal.Fallback(gpt), heal.Deadline(30*time.Second))

	type reason struct {
		Reason string `json:"reason"`
	}
	why, err := ninelives.GenerateAs[reason](context.Background(), model, ninelives.Prompt("Why do cats land on their feet?"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(why.Reason)
}
