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
	srv := chaos.New(demoScenarios...)
	for _, m := range []struct {
		name     string
		protocol ninelives.Protocol
		schema   ninelives.SchemaSupport
		base     string
	}{
		{"shaky", ninelives.AnthropicMessages, ninelives.SchemaTool, srv.URL()},
		{"steady", ninelives.OpenAIChat, ninelives.SchemaNative, srv.URL() + "/v1"},
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
