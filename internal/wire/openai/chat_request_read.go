package openai

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// DecodeChatRequest reads the body of POST /chat/completions as a server gets
// it. What has no word in the vocabulary, and what is of another type than it
// should be, is kept as it came. The error is a *ninelives.Fault of class
// format that says what is wrong with the body.
func DecodeChatRequest(body []byte) (wire.Incoming, error) {
	if rawjson.Kind(body) != '{' || !rawjson.Valid(body) {
		return wire.Incoming{}, chatBadRequest("", "the body is not a JSON object")
	}
	req := &ninelives.Request{}
	in := wire.Incoming{Request: req}
	var kept rawjson.Kept
	var messages []byte
	var limit int
	for m := range rawjson.Members(body) {
		known := true
		switch string(m.Name) {
		case "model":
			req.Model = rawjson.String(m.Value)
		case "messages":
			messages = m.Value
		case "stream":
			in.Stream, known = rawjson.Bool(m.Value)
		case "stream_options":
			in.Usage, known = rawjson.Bool(rawjson.Get(m.Value, "include_usage"))
			known = known && chatRest(m.Value, "include_usage") == nil
		case "tools":
			known = rawjson.Kind(m.Value) == '['
			for t := range rawjson.Elements(m.Value) {
				req.Tools = append(req.Tools, chatTool(t))
			}
		case "functions":
			known = rawjson.Kind(m.Value) == '['
			for f := range rawjson.Elements(m.Value) {
				req.Tools = append(req.Tools, chatFunction(f, nil))
			}
		case "tool_choice", "function_call":
			known = chatToolChoice(&req.ToolChoice, m.Value)
		case "parallel_tool_calls":
			req.ParallelTools, known = rawjson.Optional(rawjson.Bool(m.Value))
		case "max_tokens":
			if limit, known = chatCount(m.Value); req.MaxTokens == 0 {
				req.MaxTokens = limit
			}
		case "max_completion_tokens":
			if limit, known = chatCount(m.Value); known {
				req.MaxTokens = limit
			}
		case "temperature":
			req.Temperature, known = rawjson.Optional(rawjson.Float(m.Value))
		case "top_p":
			req.TopP, known = rawjson.Optional(rawjson.Float(m.Value))
		case "top_k":
			var n int
			if n, known = chatCount(m.Value); known {
				req.TopK = &n
			}
		case "seed":
			var n int64
			if n, known = rawjson.Int(m.Value); known {
				req.Seed = &n
			}
		case "stop":
			req.Stop, known = chatStop(m.Value)
		case "frequency_penalty":
			req.FrequencyPenalty, known = rawjson.Optional(rawjson.Float(m.Value))
		case "presence_penalty":
			req.PresencePenalty, known = rawjson.Optional(rawjson.Float(m.Value))
		case "n":
			req.N, known = chatCount(m.Value)
		case "logprobs":
			req.Logprobs, known = rawjson.Bool(m.Value)
		case "top_logprobs":
			req.TopLogprobs, known = chatCount(m.Value)
		case "reasoning_effort":
			req.Reasoning.Effort = rawjson.String(m.Value)
			known = req.Reasoning.Effort != ""
		case "reasoning":
			known = chatReasoningOptions(&req.Reasoning, m.Value)
		case "response_format":
			req.Output, known = chatOutput(m.Value)
		case "prompt_cache_key":
			req.CacheKey = rawjson.String(m.Value)
			known = req.CacheKey != ""
		case "user":
			req.User = rawjson.String(m.Value)
			known = req.User != ""
		case "metadata":
			req.Metadata, known = chatMetadata(m.Value)
		default:
			known = false
		}
		if !known && !(rawjson.Null(m.Value) && chatNullable(string(m.Name))) {
			kept.Add(m)
		}
	}
	req.Extra = chatExtra(kept.Object())
	if rawjson.Kind(messages) != '[' {
		return wire.Incoming{}, chatBadRequest("", "messages must be a list of messages")
	}
	var err error
	req.Messages, err = chatMessages(messages)
	if err != nil {
		return wire.Incoming{}, err
	}
	if wire.Marked(body) {
		wire.Restore(req.Messages)
	}
	return in, nil
}

// chatNullable: the parameters that mean nothing when they are null.
func chatNullable(name string) bool {
	switch name {
	case "stream", "stream_options", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls",
		"max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "seed", "stop", "frequency_penalty",
		"presence_penalty", "n", "logprobs", "top_logprobs", "reasoning_effort", "reasoning", "response_format",
		"prompt_cache_key", "user", "metadata":
		return true
	}
	return false
}

// chatCount is a whole number that is not negative.
func chatCount(v []byte) (int, bool) {
	n, ok := rawjson.Int(v)
	if !ok || n < 0 || int64(int(n)) != n {
		return 0, false
	}
	return int(n), true
}

func chatStop(v []byte) ([]string, bool) {
	if rawjson.Kind(v) == '"' {
		return []string{rawjson.String(v)}, true
	}
	if rawjson.Kind(v) != '[' {
		return nil, false
	}
	var list []string
	for e := range rawjson.Elements(v) {
		if rawjson.Kind(e) != '"' {
			return nil, false
		}
		list = append(list, rawjson.String(e))
	}
	return list, true
}

func chatMetadata(v []byte) (map[string]string, bool) {
	if rawjson.Kind(v) != '{' {
		return nil, false
	}
	var data map[string]string
	for m := range rawjson.Members(v) {
		if rawjson.Kind(m.Value) != '"' {
			return nil, false
		}
		if data == nil {
			data = map[string]string{}
		}
		data[string(m.Name)] = rawjson.String(m.Value)
	}
	return data, true
}

// chatReasoningOptions reads the object that OpenRouter has for it; what it
// has more is kept for servers that take it.
func chatReasoningOptions(r *ninelives.ReasoningOptions, v []byte) bool {
	if rawjson.Kind(v) != '{' {
		return false
	}
	if effort := rawjson.String(rawjson.Get(v, "effort")); effort != "" {
		r.Effort = effort
	}
	if n, ok := chatCount(rawjson.Get(v, "max_tokens")); ok {
		r.Budget = n
	}
	if on, ok := rawjson.Bool(rawjson.Get(v, "enabled")); ok && !on {
		r.Effort = "none"
	}
	rest := chatRest(v, chatReasoningMembers...)
	if on, ok := rawjson.Bool(rawjson.Get(v, "enabled")); ok && on && rest == nil && r.Effort == "" && r.Budget == 0 {
		rest = []byte("{}") // thinking is wanted, no matter how much
	}
	r.Extra = chatExtra(rest)
	return true
}

func chatOutput(v []byte) (*ninelives.Output, bool) {
	switch kind := rawjson.Get(v, "type"); {
	case rawjson.Is(kind, "text"):
		return nil, true
	case rawjson.Is(kind, "json_object"):
		o := &ninelives.Output{}
		if schema := rawjson.Get(v, "schema"); rawjson.Kind(schema) == '{' {
			o.Schema = append([]byte(nil), schema...) // llama.cpp and Together have it there
		}
		return o, true
	case rawjson.Is(kind, "json_schema"):
		form := rawjson.Get(v, "json_schema")
		schema := rawjson.Get(form, "schema")
		if rawjson.Kind(schema) != '{' {
			return nil, false
		}
		o := &ninelives.Output{
			Name:        rawjson.String(rawjson.Get(form, "name")),
			Description: rawjson.String(rawjson.Get(form, "description")),
			Schema:      append([]byte(nil), schema...),
		}
		o.Strict, _ = rawjson.Optional(rawjson.Bool(rawjson.Get(form, "strict")))
		return o, true
	}
	return nil, false
}

func chatTool(v []byte) ninelives.Tool {
	kind := rawjson.String(rawjson.Get(v, "type"))
	function := rawjson.Get(v, "function")
	if rawjson.Kind(function) != '{' || kind != "function" && kind != "" {
		return ninelives.Tool{Kind: kind, Meta: ninelives.Meta{Extra: chatExtra(append([]byte(nil), v...))}}
	}
	return chatFunction(function, v)
}

// chatFunction reads a function; tool is what it lies in, if anything.
func chatFunction(function, tool []byte) ninelives.Tool {
	var t ninelives.Tool
	var inner, outer rawjson.Kept
	for m := range rawjson.Members(function) {
		switch string(m.Name) {
		case "name":
			t.Name = rawjson.String(m.Value)
		case "description":
			t.Description = rawjson.String(m.Value)
		case "parameters":
			if !rawjson.Null(m.Value) {
				t.Schema = append([]byte(nil), m.Value...)
			}
		case "strict":
			if b, ok := rawjson.Optional(rawjson.Bool(m.Value)); ok {
				t.Strict = b
			}
		default:
			inner.Add(m)
		}
	}
	for m := range rawjson.Members(tool) {
		switch string(m.Name) {
		case "type", "function":
		case "cache_control":
			if t.Cache = chatCacheHint(m.Value); t.Cache == nil {
				outer.Add(m)
			}
		default:
			outer.Add(m)
		}
	}
	chatKeepNested(&outer, "function", inner.Object())
	t.Extra = chatExtra(outer.Object())
	return t
}

func chatToolChoice(c *ninelives.ToolChoice, v []byte) bool {
	switch rawjson.Kind(v) {
	case '"':
		switch word := rawjson.String(v); word {
		case "auto", "none", "required":
			c.Mode = ninelives.ToolChoiceMode(word)
		case "any": // Mistral
			c.Mode = ninelives.ToolChoiceRequired
		default:
			return false
		}
		return true
	case '{':
		from := rawjson.Get(v, "function")
		if from == nil && rawjson.Get(v, "type") == nil {
			from = v // the old function_call
		}
		if name := rawjson.String(rawjson.Get(from, "name")); name != "" {
			c.Mode, c.Name = ninelives.ToolChoiceTool, name
			return true
		}
		c.Extra = chatExtra(append([]byte(nil), v...))
		return true
	}
	return false
}

// chatCacheHint reads cache_control; nil if it is in no known form.
func chatCacheHint(v []byte) *ninelives.CacheHint {
	if !rawjson.Is(rawjson.Get(v, "type"), "ephemeral") || chatRest(v, "type", "ttl") != nil {
		return nil
	}
	return &ninelives.CacheHint{TTL: rawjson.String(rawjson.Get(v, "ttl"))}
}
