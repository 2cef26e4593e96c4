package compat

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

var (
	weatherSchema = []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)
	pixel         = []byte{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}
)

func ptr[T any](v T) *T { return &v }

// requests are one request for each thing that can be asked for.
func requests() map[string]*ninelives.Request {
	tools := []ninelives.Tool{{Name: "get_weather", Description: "Tells the weather.", Schema: weatherSchema}}
	return map[string]*ninelives.Request{
		"text": {Messages: []ninelives.Message{ninelives.SystemText("Be brief."), ninelives.UserText("Why?")}},
		"sampling": {Messages: []ninelives.Message{ninelives.UserText("Why?")}, MaxTokens: 100,
			Temperature: ptr(0.5), TopP: ptr(0.9), Stop: []string{"END"}},
		"image by address": {Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{
			ninelives.Text{Text: "What is this?"}, ninelives.Image{URL: "https://example.com/cat.png"}}}}},
		"image inline": {Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{
			ninelives.Text{Text: "What is this?"}, ninelives.Image{MediaType: "image/png", Data: pixel}}}}},
		"tools": {Messages: []ninelives.Message{ninelives.UserText("Weather in Oslo?")}, Tools: tools,
			ToolChoice: ninelives.ToolChoice{Mode: ninelives.ToolChoiceRequired}, ParallelTools: ptr(false)},
		"one tool": {Messages: []ninelives.Message{ninelives.UserText("Weather in Oslo?")}, Tools: tools,
			ToolChoice: ninelives.ToolChoice{Mode: ninelives.ToolChoiceTool, Name: "get_weather"}},
		"tool results": {Tools: tools, Messages: []ninelives.Message{
			ninelives.UserText("Weather in Oslo and Rome?"),
			{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
				ninelives.Text{Text: "I look."},
				ninelives.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`},
				ninelives.ToolCall{ID: "call_2", Name: "get_weather", Arguments: `{"city":"Rome"}`}}},
			ninelives.ToolResultText("call_1", "get_weather", "rain"),
			ninelives.ToolResultText("call_2", "get_weather", "sun"),
			ninelives.UserText("And now?")}},
		"structured output": {Messages: []ninelives.Message{ninelives.UserText("Weather in Oslo?")},
			Output: &ninelives.Output{Name: "weather", Schema: weatherSchema, Strict: ptr(true)}},
		"reasoning": {Messages: []ninelives.Message{ninelives.UserText("Think.")}, MaxTokens: 4000,
			Reasoning: ninelives.ReasoningOptions{Effort: "low"}},
	}
}

// target is a candidate that can do everything.
func target(p ninelives.Protocol, provider, model string, stream bool) wire.Target {
	return wire.Target{Stream: stream, Candidate: ninelives.Candidate{Provider: provider, Model: model, Protocol: p,
		Capabilities: ninelives.Capabilities{Window: 200_000, MaxOutput: 32_000, Tools: true, Images: true, Files: true,
			Schema: ninelives.SchemaNative}}}
}

// reply is the answer that our server side gives in these tests.
func reply() *ninelives.Response {
	return &ninelives.Response{
		ID: "answer_1", Model: "sim-1", Finish: ninelives.FinishToolCalls,
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{
			ninelives.Text{Text: "I look. Zażółć 🐈"},
			ninelives.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`},
			ninelives.ToolCall{ID: "call_2", Name: "get_weather", Arguments: `{"city":"Rome"}`}}},
		Usage: ninelives.Usage{Input: 12, Output: 34, Reported: ninelives.UsageInput | ninelives.UsageOutput},
	}
}

// events are the events of the stream of reply.
func events(r *ninelives.Response) []ninelives.Event {
	return []ninelives.Event{
		ninelives.TextDelta{Part: 0, Text: "I look. "}, ninelives.TextDelta{Part: 0, Text: "Zażółć 🐈"},
		ninelives.ToolCallDelta{Part: 1, ID: "call_1", Name: "get_weather"},
		ninelives.ToolCallDelta{Part: 1, Arguments: `{"city":`}, ninelives.ToolCallDelta{Part: 1, Arguments: `"Oslo"}`},
		ninelives.ToolCallDelta{Part: 2, ID: "call_2", Name: "get_weather", Arguments: `{"city":"Rome"}`},
		ninelives.Done{Response: r},
	}
}
