package wire

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// Dialect is how one server differs from its protocol's plain form, as data.
// The zero value is the plain form of the protocol.
type Dialect struct {
	// Name is the dialect's name, such as "deepseek".
	Name string

	// MaxTokensField is the name of the output limit; empty means the protocol's own.
	MaxTokensField string
	// MaxTokensCap is the largest value that the server takes; 0 means unknown.
	MaxTokensCap int
	// BodyVersion is sent as anthropic_version in the body where the API does not
	// take it as a header (Bedrock, Vertex; they also Drop model).
	BodyVersion string
	// Drop lists top-level parameters that the server rejects.
	Drop []string
	// Rename gives top-level parameters the server's own names.
	Rename map[string]string
	// NoStream: the server cannot stream this model; the provider asks for a
	// whole answer and yields it as a stream.
	NoStream bool
	// NoStreamUsage: usage in streams must not be asked for.
	NoStreamUsage bool

	// DeveloperRole: the server knows the developer role; else it becomes system.
	DeveloperRole bool
	// NoSystemRole: instructions go to the head of the first user message.
	NoSystemRole bool
	// MergeRoles: neighbours of one role are joined.
	MergeRoles bool
	// BridgeToolUser: a user message must not follow a tool result directly; a
	// short assistant message goes between.
	BridgeToolUser bool
	// NoNames: the name of a participant is not sent.
	NoNames bool
	// StripFields are wire fields of messages and tool calls that the server
	// forbids, by their last path element.
	StripFields []string

	// CacheControl: content parts may carry cache_control; else hints are not sent.
	CacheControl bool
	// ToolImages: results of tools may hold images; else they follow in a
	// message of the user.
	ToolImages bool
	// ToolResultNames: results of tools carry the tool's name.
	ToolResultNames bool

	// NoImages: images become the text placeholder.
	NoImages bool
	// NoTools: tools are not sent.
	NoTools bool
	// NoStrict: the strict flag of tools and schemas is not sent.
	NoStrict bool
	// NoParallelFlag: parallel_tool_calls is not sent, whatever its value.
	NoParallelFlag bool
	// ToolNames limits tool names to [a-zA-Z0-9_-]{1,64}; others are mapped.
	ToolNames bool
	// ToolIDExact: ids of tool calls must be exactly so many characters of
	// [a-zA-Z0-9] (Mistral: 9); 0 means any. ToolIDMax is the longest id that
	// is taken; 0 means unknown.
	ToolIDExact int
	ToolIDMax   int
	// ToolArgsObject: arguments of past calls are sent as an object, not as a string.
	ToolArgsObject bool
	// SchemaDrop lists JSON-schema keywords that the server rejects.
	SchemaDrop []string
	// TextToolCalls: calls written as text (<tool_call>{…}</tool_call>) are read as calls.
	TextToolCalls bool

	// Schema overrides the candidate's support of structured output when
	// SchemaSet is true (a repair found it weaker).
	Schema    ninelives.SchemaSupport
	SchemaSet bool

	// ReasoningFields are the fields that carry reasoning in answers, in the
	// order in which they are looked for; empty means the protocol's usual ones.
	ReasoningFields []string
	// ReasoningOpen: answers start inside reasoning without an opening <think>.
	ReasoningOpen bool
	// ThinkTags: <think>…</think> in text is reasoning.
	ThinkTags bool
	// EffortParam is where the reasoning effort goes: "reasoning_effort"
	// (default), "reasoning.effort", "thinking", "enable_thinking", "" with Drop.
	// In Anthropic Messages: "" is adaptive thinking with output_config.effort,
	// and a budget where the caller gave one; "adaptive" is never a budget,
	// "thinking" always one, "output_config.effort" the effort alone.
	EffortParam string
	// NoThinking: thinking is switched off, whatever effort is asked for.
	NoThinking bool
	// Efforts maps our effort names to the server's; a name that is missing is sent as it is.
	Efforts map[string]string
	// Replay overrides the candidate's replay rule when not empty.
	Replay      ninelives.ReplayRule
	ReplayField string
	// DummySignature fills in for a missing thought signature of foreign history.
	DummySignature string
	// UnsignedThinking: an Anthropic-compatible server takes thinking blocks
	// without a signature.
	UnsignedThinking bool
	// DropReasoning: no earlier reasoning is sent at all, for this call.
	DropReasoning bool

	// OutputExcludesReasoning: usage counts reasoning apart from output.
	OutputExcludesReasoning bool
	// Prefill overrides the candidate's capability when PrefillSet is true.
	Prefill    bool
	PrefillSet bool
}

// ImagePlaceholder is what stands for n images that a text-only server is not sent.
//
// Source: design 000 §1.2.
const ImagePlaceholder = "[%d attached image(s) not sent: this provider only accepts text]"

// The repairs that Dialect.Apply knows. Param and Value are as in the comment.
const (
	RepairDropParameter    = "drop_parameter"        // Param: top-level name
	RepairRenameMaxTokens  = "rename_max_tokens"     // Value: the new name
	RepairClampMaxTokens   = "clamp_max_tokens"      // Value: the limit
	RepairNoStream         = "no_stream"             //
	RepairNoStreamUsage    = "no_stream_usage"       //
	RepairDeveloperRole    = "developer_to_system"   //
	RepairSystemRole       = "system_to_user"        //
	RepairMergeRoles       = "merge_roles"           //
	RepairBridgeToolUser   = "bridge_tool_user"      //
	RepairStripField       = "strip_field"           // Param: field name
	RepairNoImages         = "downgrade_images"      //
	RepairNoTools          = "drop_tools"            //
	RepairNoStrict         = "drop_strict"           //
	RepairToolNames        = "map_tool_names"        //
	RepairToolIDMax        = "shorten_tool_ids"      // Value: the longest id
	RepairToolIDExact      = "rewrite_tool_ids"      // Value: the length of every id
	RepairToolArgsObject   = "tool_arguments_object" //
	RepairToolArgsString   = "tool_arguments_string" //
	RepairSchemaDrop       = "drop_schema_keyword"   // Param: keyword
	RepairSchemaWeaker     = "weaken_schema"         // Value: json_object, tool or "" (prompt)
	RepairReplay           = "replay_reasoning"      // Param: field, Value: rule
	RepairDropReasoning    = "drop_reasoning"        //
	RepairDummySignature   = "dummy_signature"       // Value: the dummy
	RepairNoPrefill        = "no_prefill"            //
	RepairHistory          = "repair_history"        // always done; named so that the fault can be retried once
	RepairThinkingDisabled = "disable_thinking"      //
)
