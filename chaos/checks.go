package chaos

import (
	"maps"
	"slices"
	"strings"
)

// Check names something that a strict server does not take. Beside the fixed
// ones there is "param:NAME" for a top-level parameter of that name.
type Check string

// The checks.
const (
	NoKey            Check = "no_key"            // a request without a key
	NoVersionPath    Check = "no_version_path"   // a path without /v1 (Gemini: /v1beta)
	UnknownParam     Check = "unknown_param"     // a top-level parameter that the protocol does not have
	SystemRole       Check = "system_role"       // an instruction
	DeveloperRole    Check = "developer_role"    // the developer role
	SameRoles        Check = "same_roles"        // two neighbours of one role
	UserAfterTool    Check = "user_after_tool"   // a user message directly after a tool's result
	Images           Check = "images"            // pictures
	Tools            Check = "tools"             // tools
	Schema           Check = "schema"            // structured output
	Streams          Check = "stream"            // streaming
	Prefill          Check = "prefill"           // a conversation that ends with the assistant
	MaxTokensName    Check = "max_tokens"        // chat: max_tokens instead of max_completion_tokens
	MissingReasoning Check = "missing_reasoning" // reasoning that is wanted back with tool calls is missing
)

// paramCheck is the prefix of checks for one parameter.
const paramCheck = "param:"

// check is how a request fails a Check and what it is told.
type check struct {
	fails   func(*ask) (param string, yes bool)
	error   ErrorKind
	message string
}

// requestChecks are the checks that go by the request's body.
var requestChecks = map[Check]check{
	UnknownParam: {unknownParam, UnknownParameter, ""},
	SystemRole: {roleCheck("system"), BadRequest,
		"System role not supported"},
	DeveloperRole: {roleCheck("developer"), BadRequest,
		"Invalid value: 'developer'. Supported values are: 'system', 'assistant', 'user', 'function', and 'tool'."},
	SameRoles: {func(a *ask) (string, bool) {
		for i := 1; i < len(a.turns); i++ {
			if a.turns[i].role == a.turns[i-1].role && a.turns[i].role != "tool" {
				return "messages", true
			}
		}
		return "", false
	}, BadRequest, "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."},
	UserAfterTool: {func(a *ask) (string, bool) {
		for i := 1; i < len(a.turns); i++ {
			if a.turns[i].role == "user" && a.turns[i-1].role == "tool" {
				return "messages", true
			}
		}
		return "", false
	}, BadRequest, "Unexpected role 'user' after role 'tool'"},
	Images: {func(a *ask) (string, bool) {
		for _, t := range a.turns {
			if t.images > 0 {
				return "messages", true
			}
		}
		return "", false
	}, BadRequest, "This model does not support image input."},
	Tools: {func(a *ask) (string, bool) { return "tools", len(a.tools) > 0 },
		BadRequest, "This model does not support tools."},
	Schema: {func(a *ask) (string, bool) { return "response_format", a.schema != nil && a.forced == "" },
		BadRequest, "This response_format type is unavailable now"},
	Streams: {func(a *ask) (string, bool) { return "stream", a.stream },
		BadRequest, "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported."},
	Prefill: {func(a *ask) (string, bool) { return "messages", a.last().role == "assistant" },
		PrefillRejected, ""},
	MaxTokensName: {func(a *ask) (string, bool) { return "max_tokens", a.protocol == chat && a.body["max_tokens"] != nil },
		BadRequest, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
}

func checkWords() []string {
	words := []string{string(NoKey), string(NoVersionPath)}
	for _, c := range slices.Concat(slices.Collect(maps.Keys(requestChecks)), slices.Collect(maps.Keys(historyChecks)), slices.Collect(maps.Keys(bundles))) {
		words = append(words, string(c))
	}
	slices.Sort(words[2:])
	return words
}

// knownCheck reports whether the server understands the word.
func knownCheck(c Check) bool {
	return slices.Contains(checkWords(), string(c)) || strings.HasPrefix(string(c), paramCheck) && len(c) > len(paramCheck)
}

func roleCheck(role string) func(*ask) (string, bool) {
	return func(a *ask) (string, bool) {
		for _, t := range a.turns {
			if t.role == role {
				return "messages", true
			}
		}
		return "", false
	}
}

// rejection finds the first of a step's checks that the request fails. The
// step that comes back reports it.
func rejection(checks []Check, a *ask, path string, hasKey bool) (Step, bool) {
	for _, c := range checks {
		switch {
		case bundles[c] != nil:
			if step, yes := rejection(bundles[c], a, path, hasKey); yes {
				return step, true
			}
		case historyChecks[c] != nil:
			if found := historyChecks[c](a); found != nil {
				return Step{Error: BadRequest, Message: found.message, Param: found.param}, true
			}
		case c == NoKey:
			if !hasKey {
				return Step{Error: Auth, Message: "You didn't provide an API key."}, true
			}
		case c == NoVersionPath:
			if !strings.Contains(path, "/v1/") && !strings.Contains(path, "/v1beta/") {
				page := htmlPage(404)
				return Step{Status: 404, Body: &page}, true
			}
		case strings.HasPrefix(string(c), paramCheck):
			name := strings.TrimPrefix(string(c), paramCheck)
			if _, there := a.body[name]; there {
				return Step{Error: UnknownParameter, Param: name}, true
			}
		default:
			rule := requestChecks[c]
			if param, yes := rule.fails(a); yes {
				return Step{Error: rule.error, Message: rule.message, Param: param}, true
			}
		}
	}
	return Step{}, false
}

// params are the top-level parameters of each protocol.
var params = map[protocol]string{
	chat: "model messages stream stream_options max_tokens max_completion_tokens temperature top_p n stop seed frequency_penalty presence_penalty " +
		"logit_bias logprobs top_logprobs response_format tools tool_choice parallel_tool_calls reasoning_effort user metadata store " +
		"prompt_cache_key safety_identifier service_tier modalities audio prediction verbosity web_search_options",
	responses: "model input instructions stream stream_options max_output_tokens temperature top_p tools tool_choice parallel_tool_calls reasoning text " +
		"include store previous_response_id conversation user metadata prompt prompt_cache_key prompt_cache_retention safety_identifier service_tier truncation top_logprobs background max_tool_calls",
	messages: "model messages system stream max_tokens temperature top_p top_k stop_sequences tools tool_choice thinking metadata service_tier " +
		"output_config output_format container context_management mcp_servers thread fallbacks cache_control inference_geo",
	gemini: "contents systemInstruction system_instruction generationConfig generation_config tools toolConfig tool_config safetySettings safety_settings cachedContent cached_content labels",
}

func unknownParam(a *ask) (string, bool) {
	known := strings.Fields(params[a.protocol])
	for _, name := range slices.Sorted(maps.Keys(a.body)) {
		if !slices.Contains(known, name) {
			return name, true
		}
	}
	return "", false
}
