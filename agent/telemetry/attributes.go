package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// The names of OpenTelemetry's GenAI conventions. They are spelled out here, as
// the semconv packages dropped them after v1.41.
const (
	keyOperation       = attribute.Key("gen_ai.operation.name")
	keyProvider        = attribute.Key("gen_ai.provider.name")
	keyAgent           = attribute.Key("gen_ai.agent.name")
	keyConversation    = attribute.Key("gen_ai.conversation.id")
	keyRequestModel    = attribute.Key("gen_ai.request.model")
	keyResponseModel   = attribute.Key("gen_ai.response.model")
	keyFinishReasons   = attribute.Key("gen_ai.response.finish_reasons")
	keyFirstChunk      = attribute.Key("gen_ai.response.time_to_first_chunk")
	keyInputTokens     = attribute.Key("gen_ai.usage.input_tokens")
	keyOutputTokens    = attribute.Key("gen_ai.usage.output_tokens")
	keyCachedTokens    = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	keyReasoningTokens = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	keyTokenType       = attribute.Key("gen_ai.token.type")
	keyToolName        = attribute.Key("gen_ai.tool.name")
	keyToolType        = attribute.Key("gen_ai.tool.type")
	keyToolCall        = attribute.Key("gen_ai.tool.call.id")
	keyErrorType       = attribute.Key("error.type")
	keyStatusCode      = attribute.Key("http.response.status_code")

	// What was said.
	keyInputMessages  = attribute.Key("gen_ai.input.messages")
	keyOutputMessages = attribute.Key("gen_ai.output.messages")
	keyToolArguments  = attribute.Key("gen_ai.tool.call.arguments")
	keyToolResult     = attribute.Key("gen_ai.tool.call.result")
)

// Our own names, for what the conventions have no word for.
const (
	keyTurn      = attribute.Key("ninelives.turn")
	keyMode      = attribute.Key("ninelives.mode")
	keyResumes   = attribute.Key("ninelives.turn.resumes")
	keyReason    = attribute.Key("ninelives.turn.reason")
	keyLimit     = attribute.Key("ninelives.turn.limit")
	keySteps     = attribute.Key("ninelives.turn.steps")
	keyCalls     = attribute.Key("ninelives.turn.tool_calls")
	keyCost      = attribute.Key("ninelives.cost_usd")
	keyPurpose   = attribute.Key("ninelives.purpose")
	keyCandidate = attribute.Key("ninelives.candidate")
	keyNext      = attribute.Key("ninelives.candidate.next")
	keyFallback  = attribute.Key("ninelives.is_fallback")
	keyAttempt   = attribute.Key("ninelives.attempt")
	keyAttempts  = attribute.Key("ninelives.attempts")
	keyHealing   = attribute.Key("ninelives.healing")
	keyFault     = attribute.Key("ninelives.fault")
	keyWait      = attribute.Key("ninelives.wait_seconds")
	keyRan       = attribute.Key("ninelives.tool.ran")
	keyUnknown   = attribute.Key("ninelives.tool.unknown")
	keyTier      = attribute.Key("ninelives.compaction.tier")
	keyWhy       = attribute.Key("ninelives.compaction.why")
	keyBefore    = attribute.Key("ninelives.compaction.before")
	keyAfter     = attribute.Key("ninelives.compaction.after")
	keyStrike    = attribute.Key("ninelives.compaction.strike")
	keyStop      = attribute.Key("ninelives.guard.stop")
)

// Values of gen_ai.operation.name.
const (
	opAgent = "invoke_agent"
	opChat  = "chat"
	opTool  = "execute_tool"
)

// agentName is gen_ai.agent.name.
const agentName = "ninelives"

// conventional are the providers whose name in the conventions is not ours.
var conventional = map[string]string{
	"gemini":  "gcp.gemini",
	"azure":   "azure.ai.openai",
	"bedrock": "aws.bedrock",
	"mistral": "mistral_ai",
	"xai":     "x_ai",
}

// ofCandidate names provider and model of "provider/model".
func ofCandidate(name string) (provider, model string) {
	provider, model, found := strings.Cut(name, "/")
	if !found {
		return "", name
	}
	if other, ok := conventional[provider]; ok {
		provider = other
	}
	return provider, model
}

// withoutPath is a limit of the guard without the name of a file.
func withoutPath(limit string) string {
	if strings.HasPrefix(limit, "file:") {
		return "file"
	}
	return limit
}
