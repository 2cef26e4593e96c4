package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// said wraps a sentence in the commonest envelope.
func said(text string) []byte {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": text, "type": "invalid_request_error"}})
	return b
}

func written(rs []ninelives.Repair) string {
	var out []string
	for _, r := range rs {
		s := r.String()
		if r.Once {
			s += " (once)"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// The sentences are in the manner of many servers; what matters is that each
// kind of complaint is understood in any of its wordings.
func TestRepairsAreFoundInTheWordsOfManyServers(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// The answer limit has two names.
		{"Unsupported parameter: 'max_tokens' cannot be used with this model. Try 'max_completion_tokens'.", "rename max tokens → max_completion_tokens"},
		{"max_tokens is not supported for reasoning models, please use max_completion_tokens", "rename max tokens → max_completion_tokens"},
		{"max_completion_tokens: Extra inputs are not permitted", "rename max tokens → max_tokens"},
		{"Unknown field `max_completion_tokens`; did you mean `max_tokens`?", "rename max tokens → max_tokens"},
		{"Unrecognized request argument supplied: max_completion_tokens", "rename max tokens → max_tokens"},
		{"Unknown parameter: 'max_output_tokens'.", "rename max tokens → max_tokens"},

		// The answer limit is too high.
		{"Invalid max_tokens value, the valid range of max_tokens is [1, 4096]", "clamp max tokens → 4096"},
		{"max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-x", "clamp max tokens → 8192"},
		{"Range of max_tokens should be [1, 2000]", "clamp max tokens → 2000"},
		{"The maximum tokens you requested exceed the model limit of 4,096. Try again with a maximum tokens value that is lower than 4096.", "clamp max tokens → 4096"},
		{"max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000.", "clamp max tokens → 16384"},
		{"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`", "clamp max tokens → 8192"},
		{"max_completion_tokens must not exceed 32768", "clamp max tokens → 32768"},
		{"max_tokens must be between 1 and 131072", "clamp max tokens → 131072"},
		{"Invalid value for max_output_tokens: supported range is from 1 (inclusive) to 65537 (exclusive)", "clamp max tokens → 65536"},
		{"max_tokens should be less than 8193", "clamp max tokens → 8192"},

		// Values of sampling parameters.
		{"Unsupported value: 'top_p' does not support 0.9 here, only its default (1).", "drop parameter top_p"},
		{"invalid temperature: only 1 is allowed for this model", "drop parameter temperature"},
		{"`temperature` may only be set to 1 when thinking is enabled.", "drop parameter temperature"},
		{"`temperature` is deprecated for this model.", "drop parameter temperature"},
		{"`temperature` and `top_p` cannot both be specified for this model. Please use only one.", "drop parameter top_p"},
		{"Unsupported parameter: 'presence_penalty' isn't available with reasoning models", "drop parameter presence_penalty"},
		{"Client gave an invalid argument; this model does not support parameter presencePenalty.", "drop parameter presence_penalty"},
		{"Argument not supported on this model: stop", "drop parameter stop"},
		{"Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", "drop parameter parallel_tool_calls"},
		{"parallel_tool_calls: Extra inputs are not permitted", "drop parameter parallel_tool_calls"},
		{"json: unknown field \"logit_bias\"", "drop parameter logit_bias"},
		{"Unknown parameter: 'verbosity'.", "drop parameter verbosity"},
		{"Unrecognized request arguments supplied: prompt_cache_key, safety_identifier", "drop parameter prompt_cache_key; drop parameter safety_identifier"},
		{"property 'store' is unsupported", "drop parameter store"},
		{"Extra inputs are not permitted, field: 'some_switch', value: True", "drop parameter some_switch"},
		{"Extra inputs are not permitted, field: 'messages[3].audio', value: None", "strip field audio"},
		{"Additional properties are not allowed ('metadata', 'service_tier' were unexpected)", "drop parameter metadata; drop parameter service_tier"},
		{"#: extraneous key [reasoning_effort] is not permitted", "drop parameter reasoning_effort"},
		{"Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium', and 'high'.", "drop parameter reasoning_effort"},
		{"This model does not support the logprobs option", "drop parameter logprobs"},
		{"Logprobs are not enabled for this model", "drop parameter logprobs"},
		{"This model does not support effort level 'xhigh'. Supported levels: high, low.", "drop parameter reasoning_effort"},
		{"some_new_switch: Extra inputs are not permitted", "drop parameter some_new_switch"},

		// Streams.
		{"Unrecognized request argument: stream_options. Please get in touch.", "no stream usage"},
		{"Unknown parameter: 'stream_options'.", "no stream usage"},
		{"property 'stream_options' is unsupported, did you mean 'stream'?", "no stream usage"},
		{"Argument not supported: stream_options", "no stream usage"},
		{"stream_options.include_usage is not supported", "no stream usage"},
		{"Unsupported value: 'stream' does not support true here, only its default (false).", "no stream"},
		{"This model does not support streaming.", "no stream"},
		{"Cannot use tools with stream", "no stream"},
		{"Streaming is not supported for this model, set stream to false", "no stream"},

		// Structured output.
		{"That response_format type is unavailable at present", "weaken schema → json_object"},
		{"'response_format' of type 'json_schema' is not supported with this model", "weaken schema → json_object"},
		{"Invalid parameter: response_format must be one of text, json_object", "weaken schema → json_object"},
		{"response_format json_object is not supported by this model", "weaken schema"},
		{"'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.", "weaken schema"},
		{"JSON mode is not enabled for models/some-image-model", "weaken schema"},
		{"This model does not support structured outputs.", "weaken schema → json_object"},
		{"'response_format.type' must be 'json_object' or 'text'", "weaken schema → json_object"},
		{"'response_format.type' must be 'json_schema' or 'text'", "weaken schema"},
		{"response_format.type: Input should be 'text' or 'json_object'", "weaken schema → json_object"},
		{"response_format with json_schema is enabled only for newer versions", "weaken schema → json_object"},

		// Roles.
		{"messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`", "developer to system"},
		{"'developer' is not one of ['system', 'assistant', 'user', 'tool'] - 'messages.0.role'", "developer to system"},
		{"Unexpected message role.", "developer to system"},
		{"[1214] Incorrect role information", "developer to system"},
		{"Invalid value: 'developer'. Supported values are: 'system', 'assistant', 'user' for role.", "developer to system"},
		{"System role not supported", "system to user"},
		{"Developer instruction is not enabled for models/gemma-3", "system to user"},
		{"Unsupported value: 'messages[0].role' does not support 'system' with this model.", "system to user"},
		{"System message must be at the beginning.", "system to user"},
		{"Conversation roles must alternate user/assistant/user/assistant/...", "merge roles"},
		{"This endpoint does not support successive user messages; interleave them", "merge roles"},
		{"messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row", "merge roles"},
		{"Unexpected role 'user' right after role 'tool'", "bridge tool user"},
		{"user 和 assistant 角色必须交替出现", "merge roles"},
		{"The last message must have role `user` or `tool`", "no prefill"},
		{"An `assistant` message in the final position would pre-fill the response, which is not supported", "no prefill"},
		{"Unexpected role 'tool' after role 'user'", "repair history"},
		{"Unexpected role 'user' after role 'user'", "merge roles"},
		{"messages: first message must use the \"user\" role", "merge roles"},
		{"A conversation must start with a user message. Try again with a conversation that starts with a user message.", "merge roles"},
		{"This model does not support assistant message prefill. The conversation must end with a user message.", "no prefill"},
		{"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", "no prefill"},
		{"Please ensure that the last message is from the user.", "no prefill"},
		{"The final turn has to come from a user", "no prefill"},

		// Images.
		{"messages[0]: unknown variant `image_url`, expected `text`", "downgrade images"},
		{"Model do not support image input.", "downgrade images"},
		{"Invalid content type. image_url is only supported by certain models.", "downgrade images"},
		{"At most 0 image(s) may be provided in one request.", "downgrade images"},
		{"llama-x is not a multimodal model", "downgrade images"},
		{"this model is missing data required for image input", "downgrade images"},
		{"当前模型不支持图片输入", "downgrade images"},
		{"messages.content.type 参数非法，取值范围 ['text']", "downgrade images"},
		{"this model doesn't support vision", "downgrade images"},

		// Tools.
		{"Invalid 'tools[2].function.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'.", "map tool names"},
		{"tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", "map tool names"},
		{"Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 71 instead.", "map tool names"},
		{"Invalid 'messages[2].tool_calls[1].id': string too long. Expected a string with maximum length 40, but got a string with length 120 instead.", "shorten tool ids → 40"},
		{"Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.", "shorten tool ids → 64"},
		{"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", "rewrite tool ids → 9"},
		{"Invalid function name. Must start with a letter or an underscore.", "map tool names"},
		{"gemma:2b does not support tools", "drop tools"},
		{"`tool calling` is not supported with this model", "drop tools"},
		{"tool_choice 'specified' is incompatible with thinking", "drop parameter tool_choice"},
		{"strict mode is only available on the beta endpoint", "drop strict"},
		{"tools[0].function_declarations[0].parameters.properties[at].format: only 'enum' and 'date-time' are known for STRING", "drop schema keyword format"},
		{"Function calling is not supported for this model", "drop tools"},
		{"Thinking mode does not support this tool_choice", "drop parameter tool_choice"},
		{"Tool choice 'required' is not supported", "drop parameter tool_choice"},
		{"Invalid schema for function 'g': In context=('a',), 'additionalProperties' is required to be supplied and to be false.", "drop strict"},
		{"Invalid schema for response_format 'o': In context=(), 'required' is required to be supplied and to be an array including every key in properties.", "drop strict"},
		{"tools.0.custom.strict: Extra inputs are not permitted", "drop strict"},
		{"Invalid schema for function 'f': In context=('properties', 'q'), 'minLength' is not permitted.", "drop schema keyword minLength"},
		{"Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters': Cannot find field.\nInvalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.", "drop schema keyword $schema; drop schema keyword additionalProperties"},

		// History.
		{"messages.4: text content blocks have to be non-empty", "repair history"},
		{"messages.3.content.0: text content blocks must contain non-whitespace text", "repair history"},
		{"all messages must have non-empty content except for the optional final assistant message", "repair history"},
		{"the final assistant content may not end with trailing whitespace", "repair history"},
		{"messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_9.", "repair history"},
		{"messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9", "repair history"},
		{"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.", "repair history"},
		{"messages with role 'tool' must be a response to a preceding message with 'tool_calls'.", "repair history"},
		{"No tool call found for function call output with call_id call_9.", "repair history"},
		{"Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.", "repair history"},
		{"The \"function.arguments\" parameter of the code model must be in JSON format.", "repair history"},
		{"Failed to parse tool call arguments as JSON", "repair history"},
		{"Assistant message must have content. Got role='assistant' content='' tool_calls=[ToolCall(function=FunctionCall(name='f'))]", "repair history"},

		// Reasoning.
		{"Missing `reasoning_content` field in the assistant message at message index 7.", "replay reasoning reasoning_content → require_always"},
		{"`reasoning_content` of the thinking mode must be sent back to the API.", "replay reasoning reasoning_content → require_always"},
		{"The `content[].thinking` in the thinking mode must be passed back to the API.", "replay reasoning thinking → require_always"},
		{"thinking is enabled but reasoning_content is missing in assistant tool call message at index 3", "replay reasoning reasoning_content → require_on_tool_calls"},
		{"messages.1.assistant.reasoning_content: Extra inputs are not permitted", "replay reasoning reasoning_content → forbid; strip field reasoning_content"},
		{"Unknown parameter: 'messages[1].reasoning_content'.", "replay reasoning reasoning_content → forbid; strip field reasoning_content"},
		{"reasoning_content must not be included in the messages", "replay reasoning reasoning_content → forbid; strip field reasoning_content"},
		{"messages.1.content.0: Invalid `signature` in `thinking` block", "drop reasoning (once)"},
		{"messages.3: `thinking` blocks of the latest assistant message cannot be modified.", "drop reasoning (once)"},
		{"messages.1.content.0.thinking: each thinking block must contain thinking", "drop reasoning (once)"},
		{"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", "disable thinking (once)"},
		{"The function call in position 2 is missing its thought_signature.", "dummy signature → skip_thought_signature_validator"},
		{"Item 'rs_1' of type 'reasoning' was provided without its required following item.", "drop reasoning (once)"},
		{"parameter.enable_thinking must be set to false for non-streaming calls", "disable thinking"},
		{"This model does not support thinking.", "disable thinking"},

		// Arguments.
		{"json: cannot unmarshal object into Go struct field Request.messages.tool_calls.arguments of type string", "tool arguments string"},
		{"json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments", "tool arguments object"},
		{"messages.1.tool_calls.0.function.arguments: Input should be a valid string", "tool arguments string"},
		{"Can only get item pairs from a mapping. (tool_calls arguments)", "tool arguments object"},

		// Fields of messages.
		{"messages.1.content.0.cache_control: Extra inputs are not permitted", "strip field cache_control"},
		{"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'annotations' is unsupported)]", "strip field annotations"},
		{"Unknown parameter: 'messages[3].tool_calls[0].index'.", "strip field index"},
		{"A maximum of 4 blocks with cache_control may be provided. Found 5.", "strip field cache_control"},
	} {
		f := Classify(Answer{Status: 400, Body: said(c.text)})
		if f.Class != ninelives.ClassFormat || written(f.Repairs) != c.want {
			t.Errorf("%s\n got %s: %s\nwant %s", c.text, f.Class, written(f.Repairs), c.want)
		}
	}
}

func TestAllFindingsOfAValidatorAreRepairedAtOnce(t *testing.T) {
	body := `{"object":"error","message":{"detail":[
		{"type":"extra_forbidden","loc":["body","messages",1,"assistant","tool_calls",0,"index"],"msg":"Extra inputs are not permitted","input":0},
		{"type":"extra_forbidden","loc":["body","messages",1,"assistant","refusal"],"msg":"Extra inputs are not permitted","input":null},
		{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":5},
		{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":5}]}}`
	f := Classify(Answer{Status: 422, Body: []byte(body)})
	want := "strip field index; strip field refusal; rename max tokens → max_tokens; drop parameter seed"
	if got := written(f.Repairs); f.Class != ninelives.ClassFormat || got != want {
		t.Errorf("%s: %s, want %s", f.Class, got, want)
	}
}

func TestASecondComplaintLeadsToTheNextWeakerForm(t *testing.T) {
	body := said("That response_format type is unavailable at present")
	for _, c := range []struct {
		protocol ninelives.Protocol
		applied  []ninelives.Repair
		want     string
	}{
		{ninelives.OpenAIChat, nil, "weaken schema → json_object"},
		{ninelives.OpenAIChat, one(RepairSchemaWeaker, "", "json_object"), "weaken schema"},
		{ninelives.AnthropicMessages, nil, "weaken schema → tool"},
		{ninelives.AnthropicMessages, one(RepairSchemaWeaker, "", "tool"), "weaken schema"},
	} {
		f := Classify(Answer{Status: 400, Body: body, Applied: c.applied, Candidate: ninelives.Candidate{Protocol: c.protocol}})
		if got := written(f.Repairs); got != c.want {
			t.Errorf("%s after %v: %s, want %s", c.protocol, c.applied, got, c.want)
		}
	}
}

func TestTheLimitHasOneNameInResponses(t *testing.T) {
	f := Classify(Answer{Status: 400, Body: said("Unsupported parameter: max_output_tokens"), Candidate: ninelives.Candidate{Protocol: ninelives.OpenAIResponses}})
	if got := written(f.Repairs); got != "drop parameter max_output_tokens" {
		t.Errorf("%s", got)
	}
}

func TestAnAnswerReserveThatDoesNotFitIsLoweredOnce(t *testing.T) {
	for _, c := range []struct {
		status int
		text   string
		class  ninelives.Class
		want   string
	}{
		{400, "input length and `max_tokens` exceed context limit: 150000 + 60000 > 200000, decrease input length or `max_tokens` and try again", ninelives.ClassContextLength, "clamp max tokens → 50000 (once)"},
		{400, "input length and `max_tokens` exceed context limit: 250000 + 60000 > 200000", ninelives.ClassContextLength, ""},
		{400, "This model's maximum context length is 16384 tokens. However, you requested 20000 tokens (4000 in the messages, 16000 in the completion). Please shorten it.", ninelives.ClassContextLength, "clamp max tokens → 12384 (once)"},
		{400, "'max_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 96 input tokens (4096 > 4096 - 96).", ninelives.ClassContextLength, "clamp max tokens → 4000 (once)"},
		{422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 1000 `max_new_tokens`", ninelives.ClassContextLength, "clamp max tokens → 96 (once)"},
		{402, "You asked for up to 64000 tokens, but can only afford 1,000.", ninelives.ClassBilling, "clamp max tokens → 980 (once)"},
		{402, "You requested up to 64000 tokens, but can only afford 0. Add more credits.", ninelives.ClassBilling, ""},
	} {
		f := Classify(Answer{Status: c.status, Body: said(c.text)})
		if got := written(f.Repairs); f.Class != c.class || got != c.want {
			t.Errorf("%s\n got %s: %s\nwant %s: %s", c.text, f.Class, got, c.class, c.want)
		}
	}
}

func TestWhatCannotBeRepairedIsNotRepaired(t *testing.T) {
	for _, text := range []string{
		"Could not process image",
		"max_output_tokens: integer below minimum value. Expected a value >= 16, but got 3 instead.",
		"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
		"Invalid JSON body",
		"We could not parse your request.",
		"Invalid API parameter, please check the documentation.",
		"Invalid parameter: please check it",
		"Unsupported parameter combination",
		"Unexpected argument type in request",
		"You must provide a model parameter",
		"Missing required field: messages",
		"Request body is not valid JSON",
		"Invalid value for 'messages': expected at least 1 item",
		"Something about the image: it could not be decoded",
		"That is an unsupported image. Please make sure your image is valid.",
		"Invalid 'tools': array too long. At most 128 are taken.",
	} {
		f := Classify(Answer{Status: 400, Body: said(text)})
		if f.Class != ninelives.ClassFormat || len(f.Repairs) > 0 {
			t.Errorf("%s: %s %s", text, f.Class, written(f.Repairs))
		}
	}
}

// A word or two of courtesy, another quote or another case change nothing.
func TestWordingDoesNotMatterToRepairs(t *testing.T) {
	for i, frame := range []string{"%s", "Sorry, %s", "ERROR: %s Thank you.", "%s (see the docs)", "litellm.BadRequestError: OpenAIException - %s"} {
		for _, quote := range []string{"'", "`", "\"", "“", ""} {
			text := strings.ReplaceAll(fmt.Sprintf(frame, "unsupported parameter: 'top_p' is not supported."), "'", quote)
			if i%2 == 1 {
				text = strings.ToUpper(text[:1]) + text[1:]
			}
			f := Classify(Answer{Status: 400, Body: said(text)})
			if got := written(f.Repairs); got != "drop parameter top_p" {
				t.Errorf("%s: %s", text, got)
			}
		}
	}
}
