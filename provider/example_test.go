package provider_test

import (
	"context"
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/provider"
)

// One attempt at one model, with the key from the environment.
func ExampleOpen() {
	claude, err := provider.Open("anthropic/claude-sonnet-4-6")
	if err != nil {
		fmt.Println(err) // provider: no key for anthropic: set ANTHROPIC_API_KEY
		return
	}
	for ev, err := range claude.Stream(context.Background(), ninelives.Prompt("Why do cats land on their feet?")) {
		switch e := ev.(type) {
		case nil:
			fmt.Println(err)
		case ninelives.TextDelta:
			fmt.Print(e.Text)
		}
	}
}

// A server of your own, with what the catalogue cannot know.
func ExampleOpen_ownServer() {
	_, err := provider.Open("Qwen/Qwen3-32B",
		provider.BaseURL("https://llm.mycorp.example/v1"),
		provider.Dialect("vllm"),
		provider.Window(65_536),
		provider.CAFile("/etc/mycorp/ca.pem"),
	)
	fmt.Println(err)
	// Output: provider: CA file: open /etc/mycorp/ca.pem: no such file or directory
}

// What the environment offers, in the order in which a chain asks.
func ExampleDiscover() {
	for _, found := range provider.Discover(context.Background(), nil) {
		fmt.Printf("%s (%s)\n", found.Spec(), found.Source)
	}
}
