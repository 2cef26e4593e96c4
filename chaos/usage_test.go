package chaos_test

import (
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// The three lines of the package comment, as a user would write them.
func TestThreeLinesOverLoopback(t *testing.T) {
	srv := chaos.New(chaos.Scenario{Steps: []chaos.Step{{After: 10, End: chaos.Cut}, {}}})
	t.Cleanup(srv.Close)
	model, err := provider.Open("openai/any-name", provider.BaseURL(srv.URL()))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := ninelives.Generate(t.Context(), heal.New(model), ninelives.Prompt("Hello"))
	if err != nil {
		t.Fatal(err)
	}
	if resp.Text() != chaos.Answer || resp.Model != "sim/any-name" || resp.Attempts != 2 {
		t.Errorf("%d attempts, %s: %q", resp.Attempts, resp.Model, resp.Text())
	}
}

// The same in virtual time, in every protocol: a wait is as long as was asked
// for, and the hour of a stall passes at once.
func TestTheSameInVirtualTime(t *testing.T) {
	for _, protocol := range []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini} {
		synctest.Test(t, func(t *testing.T) {
			srv := chaos.New(chaos.Scenario{Steps: []chaos.Step{
				{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 20 * time.Second},
				{},
			}})
			defer srv.Close()
			model, err := provider.Open("any", provider.BaseURL(chaos.MemoryURL), provider.Protocol(protocol), provider.Dial(srv.Dial))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			resp, err := ninelives.Generate(t.Context(), heal.New(model), ninelives.Prompt("Hello"))
			if err != nil || resp.Text() != chaos.Answer {
				t.Fatalf("%s: %v, %v", protocol, resp, err)
			}
			srv.Wait()
			log := srv.Log()
			if len(log) != 2 || log[0].Protocol != string(protocol) {
				t.Fatalf("%s: %d requests, %+v", protocol, len(log), log)
			}
			// The driver may add up to a fifth to a hint and never shortens it.
			if gap := log[1].At.Sub(start); gap < 20*time.Second || gap > 24*time.Second {
				t.Errorf("%s: the second request came after %s", protocol, gap)
			}
		})
	}
}
