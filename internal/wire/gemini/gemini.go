// Package gemini speaks the protocol of Gemini's generateContent, at Google AI
// and at Vertex, in both directions.
//
// The model's name and whether the answer is streamed are in the URL: see
// [Path]. Names of members are read in both spellings that the API takes
// (inlineData and inline_data), and written in the first.
//
// What has no place in the vocabulary is kept so that it goes back as it came:
//
//   - A proof (thoughtSignature) of a call is its Signature, that of a thought
//     is in the thought's Provenance. A proof of anything else stands for
//     thinking that only its maker can read: it is a redacted Reasoning before
//     the part that it came with, or by itself if its Extra has the members of
//     the part that it is of.
//   - The unknown members of a part are in its Extra; those inside a call under
//     "functionCall". That member also says that the call's id is the API's own:
//     ids that were made elsewhere are not sent.
//   - Parts of other kinds are Opaque.
package gemini

import (
	"net/url"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The wire fields that reasoning is read from (Provenance.Field).
const (
	fieldThought   = "thought"
	fieldSignature = "thoughtSignature"
)

// Path is the path of a request below the API's version, such as
// "/models/gemini-3-pro:generateContent". The streamed one asks for
// server-sent events. A model may come with its collection ("tunedModels/x",
// "publishers/google/models/x"); without one it is in "models".
func Path(model string, stream bool) string {
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	segments := strings.Split(strings.Trim(model, "/"), "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	path := "/" + strings.Join(segments, "/")
	if stream {
		return path + ":streamGenerateContent?alt=sse"
	}
	return path + ":generateContent"
}

// ParsePath reads the path that a client asks, of which only the end matters.
// ok is false if it asks for something else.
func ParsePath(path string) (model string, stream, ok bool) {
	path, _, _ = strings.Cut(path, "?")
	at := strings.LastIndexByte(path, ':')
	if at < 0 {
		return "", false, false
	}
	switch path[at+1:] {
	case "generateContent":
	case "streamGenerateContent":
		stream = true
	default:
		return "", false, false
	}
	model = path[strings.LastIndexByte(path[:at], '/')+1 : at]
	model, err := url.PathUnescape(model)
	return model, stream, err == nil && model != ""
}

func extraOf(raw []byte) ninelives.Extra {
	if raw == nil {
		return ninelives.Extra{}
	}
	return ninelives.Extra{Protocol: ninelives.Gemini, JSON: raw}
}

// word is the name of a member in the spelling of this package; "" for a name
// that is not known here.
func word(name []byte) string {
	switch string(name) {
	case "text":
		return "text"
	case "thought":
		return "thought"
	case "thoughtSignature", "thought_signature":
		return "thoughtSignature"
	case "inlineData", "inline_data":
		return "inlineData"
	case "fileData", "file_data":
		return "fileData"
	case "functionCall", "function_call":
		return "functionCall"
	case "functionResponse", "function_response":
		return "functionResponse"
	case "mimeType", "mime_type":
		return "mimeType"
	case "data":
		return "data"
	case "displayName", "display_name":
		return "displayName"
	case "fileUri", "file_uri":
		return "fileUri"
	case "id":
		return "id"
	case "name":
		return "name"
	case "args":
		return "args"
	case "response":
		return "response"
	case "role":
		return "role"
	case "parts":
		return "parts"
	case "contents":
		return "contents"
	case "systemInstruction", "system_instruction":
		return "systemInstruction"
	case "tools":
		return "tools"
	case "functionDeclarations", "function_declarations":
		return "functionDeclarations"
	case "description":
		return "description"
	case "parameters":
		return "parameters"
	case "parametersJsonSchema", "parameters_json_schema":
		return "parametersJsonSchema"
	case "toolConfig", "tool_config":
		return "toolConfig"
	case "functionCallingConfig", "function_calling_config":
		return "functionCallingConfig"
	case "allowedFunctionNames", "allowed_function_names":
		return "allowedFunctionNames"
	case "mode":
		return "mode"
	case "generationConfig", "generation_config":
		return "generationConfig"
	case "maxOutputTokens", "max_output_tokens":
		return "maxOutputTokens"
	case "temperature":
		return "temperature"
	case "topP", "top_p":
		return "topP"
	case "topK", "top_k":
		return "topK"
	case "seed":
		return "seed"
	case "stopSequences", "stop_sequences":
		return "stopSequences"
	case "candidateCount", "candidate_count":
		return "candidateCount"
	case "frequencyPenalty", "frequency_penalty":
		return "frequencyPenalty"
	case "presencePenalty", "presence_penalty":
		return "presencePenalty"
	case "responseLogprobs", "response_logprobs":
		return "responseLogprobs"
	case "logprobs":
		return "logprobs"
	case "responseMimeType", "response_mime_type":
		return "responseMimeType"
	case "responseSchema", "response_schema":
		return "responseSchema"
	case "responseJsonSchema", "response_json_schema":
		return "responseJsonSchema"
	case "thinkingConfig", "thinking_config":
		return "thinkingConfig"
	case "includeThoughts", "include_thoughts":
		return "includeThoughts"
	case "thinkingBudget", "thinking_budget":
		return "thinkingBudget"
	case "thinkingLevel", "thinking_level":
		return "thinkingLevel"
	}
	return ""
}
