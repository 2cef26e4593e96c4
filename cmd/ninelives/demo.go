package main

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/provider"
)

// The simulated providers of a machine without any: the first is limited, then
// breaks off in mid-answer; the second is overloaded, then answers. They are
// asked over real HTTP, in two protocols.
var demoScenarios = []chaos.Scenario{
	{Name: "shaky", Steps: []chaos.Step{
		{Error: chaos.RateLimit, Message: "simulated: too many requests, come back in a second", Hint: chaos.HintSeconds, Wait: time.Second, Delay: demoLatency},
		{After: 22, End: chaos.Cut, First: demoLatency, Interval: demoPace},
	}},
	{Name: "steady", Steps: []chaos.Step{
		{Error: chaos.Overloaded, Message: "simulated: the engine is overloaded", Delay: demoLatency},
		{First: demoLatency, Interval: demoPace},
	}},
}

const (
	demoLatency = 150 * time.Millisecond
	demoPace    = 25 * time.Millisecond
)

const demoWords = "no API key and no local model server was found, so a built-in simulator answers. It is no AI:\n" +
	"it says a fixed text, and its first provider misbehaves on purpose so that you can watch a call being healed.\n" +
	"For real answers set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama."

// demo starts the simulator and opens its two providers. Close ends it.
func demo() (models []ninelives.Model, close func(), err error) {
	return simulated(demoScenarios, "shaky", "steady")
}

// simulated starts a simulator and opens two of its models as providers, the
// first in Anthropic's protocol, the second in OpenAI's.
func simulated(scenarios []chaos.Scenario, first, second string) (models []ninelives.Model, close func(), err error) {
	srv := chaos.New(scenarios...)
	for _, m := range []struct {
		name     string
		protocol ninelives.Protocol
		schema   ninelives.SchemaSupport
		base     string
	}{
		{first, ninelives.AnthropicMessages, ninelives.SchemaTool, srv.URL()},
		{second, ninelives.OpenAIChat, ninelives.SchemaNative, srv.URL() + "/v1"},
	} {
		model, err := provider.Open(m.name, provider.Provider("simulator"), provider.BaseURL(m.base),
			provider.Protocol(m.protocol), provider.Key(provider.Secret{}), provider.Capabilities(func(c *ninelives.Capabilities) {
				c.Window, c.Schema = 200_000, m.schema
			}))
		if err != nil {
			srv.Close()
			return nil, nil, err
		}
		models = append(models, model)
	}
	return models, srv.Close, nil
}

// simulatedCoder is said where the scripted coder answers.
const simulatedCoder = "no API key and no local model server was found, so a built-in simulator works here. It is no AI: it\n" +
	"follows plain orders such as: replace \"A\" with \"B\" in FILE, create FILE with \"TEXT\", read FILE, run CMD.\n" +
	"For real work set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama."

// The simulated providers of an agent on a machine without any: the first is
// overloaded now and then, so that turns are seen to be healed.
var demoCoders = []chaos.Scenario{
	{Name: "shaky-coder", Loop: true, Steps: []chaos.Step{
		{Error: chaos.Overloaded, Message: "simulated: overloaded", Delay: demoLatency},
		{Times: 20, Coder: true, First: demoLatency, Interval: demoPace},
	}},
	{Name: "coder", Steps: []chaos.Step{{Coder: true, First: demoLatency, Interval: demoPace}}},
}

// demoCoder starts the simulator's scripted coder behind two providers.
func demoCoder() (models []ninelives.Model, close func(), err error) {
	return simulated(demoCoders, "shaky-coder", "coder")
}
