package wire

import (
	"net/url"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// server is one row of the table of known servers.
type server struct {
	// names are the dialect's name and its aliases.
	names []string
	// hosts are what the host is or ends in; ports are the default ports of
	// servers that run anywhere.
	hosts []string
	ports []string
	Dialect
	// models are changes for some of the server's models; all that match apply.
	models []modelRule
}

// modelRule changes the dialect for the models whose name, without the part
// before the last slash, begins with one of the prefixes.
type modelRule struct {
	prefixes []string
	// except are prefixes of those that are not meant.
	except []string
	change func(*Dialect)
}

// The parameters that many servers reject by name. An unknown server gets all
// of them: it says so if it minds, and that is learnt.
var (
	// ours are parameters that OpenAI itself does not have.
	notOpenAI = []string{"top_k"}
	// onlyOpenAI are OpenAI's own, of no use elsewhere.
	onlyOpenAI = []string{"prompt_cache_key", "metadata", "store", "service_tier"}
	// sampling is what reasoning models of OpenAI do not take.
	sampling = []string{"temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"}
)

// openAIModels: what OpenAI's reasoning models do otherwise, wherever they run.
// From gpt-5.1 on, sampling parameters are taken when reasoning is off.
var openAIModels = []modelRule{
	{prefixes: []string{"o1", "o3", "o4", "gpt-5", "gpt-6", "codex"}, change: func(d *Dialect) { d.MaxTokensField = "max_completion_tokens" }},
	{prefixes: []string{"o1", "o3", "o4", "gpt-5"}, except: []string{"gpt-5.", "gpt-5-chat"}, change: func(d *Dialect) { d.Drop = join(d.Drop, sampling) }},
	{prefixes: []string{"o1", "o3", "o4"}, change: func(d *Dialect) { d.NoParallelFlag = true }},
	{prefixes: []string{"o1-mini", "o1-preview"}, change: func(d *Dialect) {
		d.NoSystemRole, d.DeveloperRole, d.NoTools = true, false, true
	}},
}

// servers is what is known of OpenAI-compatible servers, from their
// documentation, public issues and recorded traffic. What is not here is
// learnt from the first complaint.
var servers = []server{
	{
		names: []string{"openai"}, hosts: []string{"api.openai.com"},
		Dialect: Dialect{
			MaxTokensField: "max_completion_tokens", DeveloperRole: true, Drop: notOpenAI,
			ToolNames: true, ToolIDMax: 40,
		},
		models: openAIModels,
	},
	{
		names: []string{"azure", "azure-openai"}, hosts: []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"},
		Dialect: Dialect{DeveloperRole: true, Drop: join(notOpenAI, onlyOpenAI), ToolNames: true, ToolIDMax: 40},
		models:  openAIModels,
	},
	{
		names: []string{"copilot", "github-copilot"}, hosts: []string{"githubcopilot.com", "models.github.ai"},
		Dialect: Dialect{Drop: join(notOpenAI, onlyOpenAI), ToolNames: true, ToolIDMax: 64},
		models:  openAIModels,
	},
	{
		names: []string{"deepseek"}, hosts: []string{"api.deepseek.com"},
		// The key must be there on every assistant message once thinking is on;
		// an empty one is taken, and ignored where it is not needed.
		Dialect: Dialect{
			NoImages: true, ToolNames: true, EffortParam: "thinking",
			Replay: ninelives.ReplayRequireAlways, ReplayField: "reasoning_content",
			Drop: join(notOpenAI, onlyOpenAI),
		},
	},
	{
		names: []string{"moonshot", "kimi"}, hosts: []string{"api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"},
		Dialect: Dialect{
			EffortParam: "thinking", ToolNames: true,
			Replay: ninelives.ReplayRequireOnToolCalls, ReplayField: "reasoning_content",
			Drop: []string{"top_k", "metadata", "store", "service_tier"},
		},
	},
	{
		names: []string{"zai", "glm", "zhipu", "bigmodel"}, hosts: []string{"api.z.ai", "open.bigmodel.cn"},
		Dialect: Dialect{
			EffortParam: "thinking", NoParallelFlag: true, ToolNames: true,
			Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content",
			Drop: join(notOpenAI, onlyOpenAI),
		},
	},
	{
		names: []string{"qwen", "dashscope", "alibaba"}, hosts: []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", ".maas.aliyuncs.com"},
		Dialect: Dialect{
			EffortParam: "enable_thinking", CacheControl: true, ToolNames: true,
			Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content",
			Drop: onlyOpenAI,
		},
	},
	{
		names: []string{"minimax"}, hosts: []string{"api.minimax.io", "api.minimaxi.com", "api.minimax.chat"},
		Dialect: Dialect{
			ThinkTags: true, ToolNames: true, MaxTokensField: "max_completion_tokens",
			Replay: ninelives.ReplayIgnore, ReplayField: FieldThinkTags,
			Drop: join(notOpenAI, onlyOpenAI),
		},
	},
	{
		names: []string{"mistral"}, hosts: []string{"api.mistral.ai", "codestral.mistral.ai"},
		// 422 for every field that it does not know, in messages too.
		Dialect: Dialect{
			Rename: map[string]string{"seed": "random_seed"}, NoStreamUsage: true,
			Drop:        []string{"top_k", "logprobs", "top_logprobs", "logit_bias", "user", "prompt_cache_key", "store", "service_tier", "reasoning_effort"},
			StripFields: []string{"annotations", "audio", "refusal", "index", "extra_content", "name"},
			NoNames:     true, BridgeToolUser: true, ToolImages: true, ToolNames: true, ToolIDExact: 9,
			Replay: ninelives.ReplayIgnore, ReplayField: FieldThinkingPart,
		},
		models: []modelRule{{prefixes: []string{""}, except: []string{"magistral", "mistral-small-4", "mistral-medium-4"}, change: func(d *Dialect) { d.Replay = ninelives.ReplayForbid }}},
	},
	{
		names: []string{"groq"}, hosts: []string{"api.groq.com"},
		Dialect: Dialect{
			MaxTokensField: "max_completion_tokens", ToolNames: true,
			Drop:        join([]string{"top_k", "logprobs", "top_logprobs", "logit_bias"}, onlyOpenAI),
			StripFields: []string{"annotations", "audio", "refusal", "channel", "executed_tools", "index", "extra_content"},
			Replay:      ninelives.ReplayIgnore, ReplayField: "reasoning",
		},
		models: []modelRule{
			{prefixes: []string{"qwen3"}, change: func(d *Dialect) {
				d.Efforts = map[string]string{"minimal": "default", "low": "default", "medium": "default", "high": "default", "xhigh": "default"}
			}},
		},
	},
	{
		names: []string{"xai", "grok"}, hosts: []string{"api.x.ai"},
		Dialect: Dialect{
			OutputExcludesReasoning: true, ToolNames: true, Drop: join(notOpenAI, onlyOpenAI),
			Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content",
		},
		models: []modelRule{{
			prefixes: []string{"grok-3-mini", "grok-4", "grok-code"},
			change:   func(d *Dialect) { d.Drop = join(d.Drop, []string{"presence_penalty", "frequency_penalty", "stop"}) },
		}, {
			prefixes: []string{"grok-4", "grok-code", "grok-2"}, except: []string{"grok-4.2", "grok-4.3"},
			change: func(d *Dialect) { d.Drop = join(d.Drop, []string{"reasoning_effort"}) },
		}},
	},
	{
		names: []string{"together"}, hosts: []string{"api.together.xyz", "api.together.ai"},
		Dialect: Dialect{Drop: onlyOpenAI, ToolNames: true, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning"},
	},
	{
		names: []string{"fireworks"}, hosts: []string{"api.fireworks.ai"},
		Dialect: Dialect{Drop: onlyOpenAI, ToolNames: true, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content"},
	},
	{
		names: []string{"cerebras"}, hosts: []string{"api.cerebras.ai"},
		Dialect: Dialect{
			MaxTokensField: "max_completion_tokens", ToolNames: true,
			Drop:        join([]string{"top_k", "presence_penalty", "frequency_penalty", "logit_bias"}, onlyOpenAI),
			StripFields: []string{"annotations", "audio", "refusal", "extra_content"},
			Replay:      ninelives.ReplayIgnore, ReplayField: "reasoning",
		},
	},
	{
		names: []string{"openrouter"}, hosts: []string{"openrouter.ai"},
		Dialect: Dialect{
			EffortParam: "reasoning.effort", CacheControl: true, ToolNames: true,
			Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_details",
		},
	},
	{
		names: []string{"vercel", "ai-gateway"}, hosts: []string{"ai-gateway.vercel.sh"},
		Dialect: Dialect{
			EffortParam: "reasoning.effort", CacheControl: true, ToolNames: true,
			Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_details",
		},
	},
	{
		names: []string{"perplexity"}, hosts: []string{"api.perplexity.ai"},
		Dialect: Dialect{
			NoTools: true, MergeRoles: true, ThinkTags: true,
			Drop:   join([]string{"seed", "stop", "n", "logprobs", "top_logprobs", "logit_bias", "user"}, onlyOpenAI),
			Replay: ninelives.ReplayForbid,
		},
	},
	{
		names: []string{"huggingface", "hf"}, hosts: []string{"router.huggingface.co", "api-inference.huggingface.co", ".endpoints.huggingface.cloud"},
		Dialect: Dialect{Drop: onlyOpenAI, ToolNames: true},
	},
	{
		names: []string{"gemini-openai"}, hosts: []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com"},
		Dialect: Dialect{
			ToolResultNames: true, ToolNames: true, Replay: ninelives.ReplayIgnore,
			Drop: join([]string{"top_k", "seed", "logit_bias", "user"}, onlyOpenAI),
		},
		models: []modelRule{{prefixes: []string{"gemini-3", "gemini-4"}, change: func(d *Dialect) { d.DummySignature = GeminiDummySignature }}},
	},
	{
		names: []string{"venice"}, hosts: []string{"api.venice.ai"},
		Dialect: Dialect{Drop: []string{"metadata", "store", "service_tier"}, ToolNames: true, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content"},
	},
	{
		names: []string{"nebius"}, hosts: []string{"api.studio.nebius.ai", "api.studio.nebius.com", "tokenfactory.nebius.com"},
		Dialect: Dialect{Drop: onlyOpenAI, ToolNames: true, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content"},
	},
	{
		names: []string{"deepinfra"}, hosts: []string{"api.deepinfra.com"},
		Dialect: Dialect{Drop: onlyOpenAI, ToolNames: true, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content"},
	},
	{
		names: []string{"snowflake"}, hosts: []string{".snowflakecomputing.com"},
		Dialect: Dialect{MaxTokensField: "max_completion_tokens", Drop: join(notOpenAI, onlyOpenAI), ToolNames: true},
	},
	{
		names: []string{"ollama"}, hosts: []string{"ollama.com", "ollama"}, ports: []string{"11434"},
		Dialect: Dialect{Drop: onlyOpenAI, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning"},
	},
	{
		names: []string{"lmstudio", "lm-studio"}, ports: []string{"1234"},
		Dialect: Dialect{Drop: onlyOpenAI, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content"},
	},
	{
		names: []string{"llamacpp", "llama.cpp", "llama-cpp"}, ports: []string{"8080"},
		Dialect: Dialect{Drop: onlyOpenAI, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content"},
	},
	{
		names: []string{"vllm"}, ports: []string{"8000"},
		// Since 0.19 vLLM reads reasoning and overlooks reasoning_content.
		Dialect: Dialect{Drop: onlyOpenAI, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning"},
	},
	// What a model writes depends on its template, which no base URL tells: these
	// are only found by name.
	{names: []string{"think-tags"}, Dialect: Dialect{ThinkTags: true, Replay: ninelives.ReplayIgnore}},
	{names: []string{"think-open"}, Dialect: Dialect{ReasoningOpen: true, Replay: ninelives.ReplayIgnore}},
	{names: []string{"hermes", "text-tools"}, Dialect: Dialect{ThinkTags: true, TextToolCalls: true, Replay: ninelives.ReplayIgnore}},
	{
		names: []string{"sglang"}, ports: []string{"30000"},
		Dialect: Dialect{Drop: onlyOpenAI, Replay: ninelives.ReplayIgnore, ReplayField: "reasoning_content"},
	},
}

// GeminiDummySignature is what Gemini takes in place of the thought signature
// of a call that it did not make itself.
//
// Source: https://ai.google.dev/gemini-api/docs/thought-signatures
const GeminiDummySignature = "skip_thought_signature_validator"

// DialectFor finds the protocol and the dialect of the server at a base URL. A
// base URL that contains "anthropic" speaks Anthropic Messages, Gemini's own
// and Ollama's /api speak theirs, everything else is OpenAI-compatible. A
// server that is not known gets the plain form.
//
// Source: design 000 §1.1.
func DialectFor(baseURL, model string) (Dialect, ninelives.Protocol) {
	u, err := url.Parse(strings.ToLower(strings.TrimSpace(baseURL)))
	if err != nil {
		u = &url.URL{Host: strings.ToLower(baseURL)}
	}
	host, port, path := u.Hostname(), u.Port(), strings.Trim(u.Path, "/")
	s := serverAt(host, port)
	switch {
	case strings.Contains(strings.ToLower(baseURL), "anthropic"), isBedrock(host) && !strings.Contains(path, "openai"):
		return anthropicDialect(s, host, model), ninelives.AnthropicMessages
	case strings.HasSuffix(host, "generativelanguage.googleapis.com") && !strings.Contains(path, "openai"),
		strings.HasSuffix(host, "aiplatform.googleapis.com") && !strings.Contains(path, "openapi"):
		return geminiDialect(model), ninelives.Gemini
	case s != nil && s.names[0] == "ollama" && (path == "api" || strings.HasPrefix(path, "api/")):
		return s.dialect(model), ninelives.OllamaNative
	case s == nil:
		return Dialect{}, ninelives.OpenAIChat
	}
	return s.dialect(model), ninelives.OpenAIChat
}

// anthropicDialect is for Anthropic itself, or for another server's endpoint
// that speaks its protocol: those sign nothing, and take thinking unsigned.
func anthropicDialect(s *server, host, model string) Dialect {
	if s == nil {
		return claudeDialect(host, model)
	}
	d := Dialect{Name: s.names[0] + "-anthropic", UnsignedThinking: true, NoImages: s.NoImages}
	if s.Replay == ninelives.ReplayRequireAlways || s.Replay == ninelives.ReplayRequireOnToolCalls {
		d.Replay, d.ReplayField = s.Replay, "thinking"
	}
	return d
}

// geminiDialect is for Gemini's own protocol: from Gemini 3 on a call needs a
// thought signature, and thinking is set by level instead of by budget.
func geminiDialect(model string) Dialect {
	d := Dialect{Name: "gemini", ToolNames: true}
	switch version := strings.TrimPrefix(strings.ToLower(model), "models/"); {
	case strings.HasPrefix(version, "gemini-1"), strings.HasPrefix(version, "gemini-2"):
		d.EffortParam = "thinkingBudget"
	case strings.HasPrefix(version, "gemini-"):
		d.DummySignature = GeminiDummySignature
	}
	return d
}

// Param is how a top-level parameter is called here; false if the server
// rejects it.
func (d Dialect) Param(name string) (string, bool) {
	if slices.Contains(d.Drop, name) {
		return "", false
	}
	if own, ok := d.Rename[name]; ok {
		name = own
	}
	return name, true
}

// DialectNamed finds a dialect by its name; false if there is none of that name.
func DialectNamed(name string) (Dialect, bool) {
	name = strings.ToLower(name)
	switch name {
	case "anthropic", "gemini":
		return Dialect{Name: name}, true
	case "plain":
		return Dialect{}, true
	}
	for i := range servers {
		if slices.Contains(servers[i].names, name) {
			return servers[i].dialect(""), true
		}
	}
	return Dialect{}, false
}

func serverAt(host, port string) *server {
	for i, s := range servers {
		for _, h := range s.hosts {
			if host == strings.TrimPrefix(h, ".") || strings.HasSuffix(host, "."+strings.TrimPrefix(h, ".")) {
				return &servers[i]
			}
		}
	}
	for i, s := range servers {
		if port != "" && slices.Contains(s.ports, port) {
			return &servers[i]
		}
	}
	return nil
}

// dialect is the server's dialect for one model. Its slices are the caller's own.
func (s *server) dialect(model string) Dialect {
	d := s.Dialect
	d.Name = s.names[0]
	d.Drop, d.StripFields = slices.Clone(d.Drop), slices.Clone(d.StripFields)
	model = strings.ToLower(model)
	model = model[strings.LastIndexByte(model, '/')+1:]
	hasPrefix := func(p string) bool { return strings.HasPrefix(model, p) }
	for _, r := range s.models {
		if model != "" && slices.ContainsFunc(r.prefixes, hasPrefix) && !slices.ContainsFunc(r.except, hasPrefix) {
			r.change(&d)
		}
	}
	return d
}

func join(a, b []string) []string { return append(slices.Clone(a), b...) }

// Apply gives the dialect with the repairs applied, in order. An unknown repair
// changes nothing.
func (d Dialect) Apply(repairs []ninelives.Repair) Dialect {
	for _, r := range repairs {
		d.apply(r)
	}
	return d
}

func (d *Dialect) apply(r ninelives.Repair) {
	add := func(list []string, s string) []string {
		if s == "" || slices.Contains(list, s) {
			return list
		}
		return join(list, []string{s})
	}
	switch r.Name {
	case RepairDropParameter:
		d.Drop = add(d.Drop, r.Param)
		switch r.Param {
		case "stream_options":
			d.NoStreamUsage = true
		case "parallel_tool_calls":
			d.NoParallelFlag = true
		case "stream":
			d.NoStream = true
		}
	case RepairRenameMaxTokens:
		d.MaxTokensField = r.Value
	case RepairClampMaxTokens:
		if n := atoi(r.Value); n > 0 && (d.MaxTokensCap == 0 || n < d.MaxTokensCap) {
			d.MaxTokensCap = n
		}
	case RepairNoStream:
		d.NoStream = true
	case RepairNoStreamUsage:
		d.NoStreamUsage = true
	case RepairDeveloperRole:
		d.DeveloperRole = false
	case RepairSystemRole:
		d.NoSystemRole = true
	case RepairMergeRoles:
		d.MergeRoles = true
	case RepairBridgeToolUser:
		d.BridgeToolUser = true
	case RepairStripField:
		d.StripFields = add(d.StripFields, r.Param)
		switch r.Param {
		case "strict":
			d.NoStrict = true
		case "cache_control":
			d.CacheControl = false
		}
	case RepairNoImages:
		d.NoImages = true
	case RepairNoTools:
		d.NoTools = true
	case RepairNoStrict:
		d.NoStrict = true
	case RepairToolNames:
		d.ToolNames = true
	case RepairToolIDMax:
		if n := atoi(r.Value); n > 0 && (d.ToolIDMax == 0 || n < d.ToolIDMax) {
			d.ToolIDMax = n
		}
	case RepairToolIDExact:
		if n := atoi(r.Value); n > 0 {
			d.ToolIDExact = n
		}
	case RepairToolArgsObject:
		d.ToolArgsObject = true
	case RepairToolArgsString:
		d.ToolArgsObject = false
	case RepairSchemaDrop:
		d.SchemaDrop = add(d.SchemaDrop, r.Param)
	case RepairSchemaWeaker:
		d.Schema, d.SchemaSet = ninelives.SchemaSupport(r.Value), true
	case RepairReplay:
		if d.Replay = ninelives.ReplayRule(r.Value); d.Replay == "" {
			d.Replay = ninelives.ReplayRequireAlways
		}
		if r.Param != "" {
			d.ReplayField = r.Param
		}
	case RepairDropReasoning:
		d.DropReasoning = true
	case RepairDummySignature:
		d.DummySignature = r.Value
	case RepairNoPrefill:
		d.Prefill, d.PrefillSet = false, true
	case RepairThinkingDisabled:
		d.NoThinking = true
	case RepairHistory:
		// Histories are always repaired.
	}
}
