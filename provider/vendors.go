package provider

import (
	"net"
	"net/url"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/nearest"
)

// vendor is what is known about one provider apart from its models.
type vendor struct {
	name    string
	aliases []string
	// base is the API's base URL; empty where every customer has an own one.
	base string
	// basePath completes a base URL from baseEnv that has no path, because
	// that vendor's own tools add it.
	basePath string
	baseEnv  []string
	keyEnv   []string
	// protocol is set where the base URL does not tell it.
	protocol ninelives.Protocol
	// also are the other protocols that the vendor's own servers speak.
	also []ninelives.Protocol
	auth auth
	// model is asked when none is named.
	model string
	// deployment are the variables of a default model that the customer chose.
	deployment []string
	// bearerEnv is the variable of keyEnv whose key is sent as a bearer token
	// whatever auth says.
	bearerEnv string
	// headers are sent with the values of environment variables, if set.
	headers map[string]string
	// local servers need no key.
	local bool
	// windowEnv holds the context size of a local server, where it is ours too.
	windowEnv string
	// ownModels: its variables are used for servers of all kinds, so that at a
	// foreign base URL its dialect holds for its own models only.
	ownModels bool
	// dialectBase tells the dialect where base does not.
	dialectBase string
	// named vendors are only asked when they are named: their key is in many
	// environments for another purpose.
	named bool
}

// auth is how a key is sent.
type auth int

const (
	authBearer auth = iota
	authXAPIKey
	authGoogle
	authAzure
)

func (a auth) header(key string) (name, value string) {
	switch a {
	case authXAPIKey:
		return "X-Api-Key", key
	case authGoogle:
		return "X-Goog-Api-Key", key
	case authAzure:
		return "Api-Key", key
	default:
		return "Authorization", "Bearer " + key
	}
}

// vendors in the order in which a default chain asks them: the makers of the
// strongest general models first, then those who serve others' models, then
// this machine. Base URLs and variables are those of the vendors' own tools.
var vendors = []vendor{
	{name: "anthropic", aliases: []string{"claude"}, base: "https://api.anthropic.com", baseEnv: []string{"ANTHROPIC_BASE_URL"}, keyEnv: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, protocol: ninelives.AnthropicMessages, bearerEnv: "ANTHROPIC_AUTH_TOKEN", auth: authXAPIKey, model: "claude-sonnet-4-6"},
	{name: "openai", base: "https://api.openai.com/v1", baseEnv: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}, keyEnv: []string{"OPENAI_API_KEY"}, ownModels: true, also: []ninelives.Protocol{ninelives.OpenAIResponses}, model: "gpt-5.4", headers: map[string]string{"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}},
	{name: "gemini", aliases: []string{"google", "googleai"}, base: "https://generativelanguage.googleapis.com", baseEnv: []string{"GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"}, keyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, protocol: ninelives.Gemini, auth: authGoogle, model: "gemini-3.5-flash"},
	{name: "azure", aliases: []string{"azure-openai"}, baseEnv: []string{"AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL"}, keyEnv: []string{"AZURE_OPENAI_API_KEY"}, auth: authAzure, dialectBase: "https://any.openai.azure.com", deployment: []string{"AZURE_OPENAI_DEPLOYMENT", "AZURE_OPENAI_DEPLOYMENT_NAME"}},
	{name: "deepseek", base: "https://api.deepseek.com", baseEnv: []string{"DEEPSEEK_BASE_URL", "DEEPSEEK_API_BASE"}, keyEnv: []string{"DEEPSEEK_API_KEY"}, model: "deepseek-v4-pro"},
	{name: "xai", aliases: []string{"grok", "x-ai"}, base: "https://api.x.ai/v1", baseEnv: []string{"XAI_BASE_URL"}, basePath: "/v1", keyEnv: []string{"XAI_API_KEY"}, model: "grok-4.3"},
	{name: "moonshot", aliases: []string{"kimi", "moonshotai"}, base: "https://api.moonshot.ai/v1", baseEnv: []string{"MOONSHOT_BASE_URL"}, basePath: "/v1", keyEnv: []string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}, model: "kimi-k3"},
	{name: "zai", aliases: []string{"zhipu", "zhipuai", "z-ai", "glm", "bigmodel"}, base: "https://api.z.ai/api/paas/v4", baseEnv: []string{"ZAI_BASE_URL", "ZHIPUAI_BASE_URL"}, keyEnv: []string{"ZAI_API_KEY", "ZHIPUAI_API_KEY"}, model: "glm-5.1"},
	{name: "qwen", aliases: []string{"dashscope", "alibaba"}, base: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", baseEnv: []string{"DASHSCOPE_BASE_URL"}, basePath: "/compatible-mode/v1", keyEnv: []string{"DASHSCOPE_API_KEY"}, model: "qwen3.6-plus"},
	{name: "minimax", base: "https://api.minimax.io/v1", baseEnv: []string{"MINIMAX_BASE_URL"}, basePath: "/v1", keyEnv: []string{"MINIMAX_API_KEY"}, model: "MiniMax-M2.5"},
	{name: "mistral", aliases: []string{"mistralai"}, base: "https://api.mistral.ai/v1", baseEnv: []string{"MISTRAL_BASE_URL"}, basePath: "/v1", keyEnv: []string{"MISTRAL_API_KEY"}, model: "mistral-large-latest"},
	{name: "groq", base: "https://api.groq.com/openai/v1", baseEnv: []string{"GROQ_BASE_URL"}, basePath: "/openai/v1", keyEnv: []string{"GROQ_API_KEY"}, model: "openai/gpt-oss-120b"},
	{name: "cerebras", base: "https://api.cerebras.ai/v1", baseEnv: []string{"CEREBRAS_BASE_URL"}, basePath: "/v1", keyEnv: []string{"CEREBRAS_API_KEY"}, model: "gpt-oss-120b"},
	{name: "together", aliases: []string{"togetherai"}, base: "https://api.together.xyz/v1", baseEnv: []string{"TOGETHER_BASE_URL"}, basePath: "/v1", keyEnv: []string{"TOGETHER_API_KEY"}, model: "openai/gpt-oss-120b"},
	{name: "fireworks", aliases: []string{"fireworks-ai"}, base: "https://api.fireworks.ai/inference/v1", baseEnv: []string{"FIREWORKS_BASE_URL"}, basePath: "/inference/v1", keyEnv: []string{"FIREWORKS_API_KEY"}, model: "accounts/fireworks/models/gpt-oss-120b"},
	{name: "openrouter", base: "https://openrouter.ai/api/v1", baseEnv: []string{"OPENROUTER_BASE_URL"}, basePath: "/api/v1", keyEnv: []string{"OPENROUTER_API_KEY"}, model: "anthropic/claude-sonnet-4.6"},
	{name: "perplexity", base: "https://api.perplexity.ai", baseEnv: []string{"PERPLEXITY_BASE_URL"}, keyEnv: []string{"PERPLEXITY_API_KEY", "PPLX_API_KEY"}, model: "sonar"},
	{name: "nebius", base: "https://api.tokenfactory.nebius.com/v1", baseEnv: []string{"NEBIUS_BASE_URL"}, keyEnv: []string{"NEBIUS_API_KEY"}, model: "openai/gpt-oss-120b"},
	{name: "deepinfra", base: "https://api.deepinfra.com/v1/openai", baseEnv: []string{"DEEPINFRA_BASE_URL"}, keyEnv: []string{"DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"}, model: "openai/gpt-oss-120b"},
	{name: "venice", base: "https://api.venice.ai/api/v1", baseEnv: []string{"VENICE_BASE_URL"}, keyEnv: []string{"VENICE_API_KEY"}, model: "qwen3-235b"},
	{name: "vercel", aliases: []string{"ai-gateway", "vercel-gateway"}, base: "https://ai-gateway.vercel.sh/v1", keyEnv: []string{"AI_GATEWAY_API_KEY"}, model: "anthropic/claude-sonnet-4.6"},
	{name: "huggingface", aliases: []string{"hf"}, base: "https://router.huggingface.co/v1", keyEnv: []string{"HF_TOKEN", "HUGGINGFACE_API_KEY"}, model: "openai/gpt-oss-120b", named: true},

	{name: "ollama", base: "http://127.0.0.1:11434/v1", baseEnv: []string{"OLLAMA_BASE_URL", "OLLAMA_HOST"}, basePath: "/v1", windowEnv: "OLLAMA_CONTEXT_LENGTH", local: true},
	{name: "lmstudio", aliases: []string{"lm-studio"}, base: "http://127.0.0.1:1234/v1", baseEnv: []string{"LMSTUDIO_BASE_URL", "LM_STUDIO_BASE_URL"}, basePath: "/v1", local: true},
	{name: "llamacpp", aliases: []string{"llama.cpp", "llama-cpp", "llama-server"}, base: "http://127.0.0.1:8080/v1", baseEnv: []string{"LLAMACPP_BASE_URL"}, basePath: "/v1", keyEnv: []string{"LLAMA_API_KEY"}, local: true},
	{name: "vllm", base: "http://127.0.0.1:8000/v1", baseEnv: []string{"VLLM_BASE_URL"}, basePath: "/v1", keyEnv: []string{"VLLM_API_KEY"}, local: true},
}

// ownHost is where the vendor's own servers are; empty if that is not known.
func (v vendor) ownHost() string {
	u, err := parseBase(v.base)
	if err != nil {
		return ""
	}
	return endpoint{base: u}.hostPort()
}

// vendorNamed finds a vendor by its name or an alias, in any case.
func vendorNamed(name string) (vendor, bool) {
	name = strings.ToLower(name)
	for _, v := range vendors {
		if v.name == name || slices.Contains(v.aliases, name) {
			return v, true
		}
	}
	return vendor{}, false
}

// Providers lists the names of the providers that Open knows, in the order in
// which a default chain asks them.
func Providers() []string {
	names := make([]string, len(vendors))
	for i, v := range vendors {
		names[i] = v.name
	}
	return names
}

// IsProvider reports whether Open knows a provider by this name or alias.
func IsProvider(name string) bool {
	_, ok := vendorNamed(name)
	return ok
}

// nearestVendor is ` (did you mean "anthropic"?)` for a misspelt provider, or empty.
func nearestVendor(name string) string {
	var names []string
	for _, v := range vendors {
		names = append(append(names, v.name), v.aliases...)
	}
	return nearest.Hint(name, names)
}

// key finds the vendor's key in the environment, and the variable that has it.
func (v vendor) key(env Env) (Secret, string) {
	for _, name := range v.keyEnv {
		if text := env.get(name); text != "" {
			return NewSecret(text), name
		}
	}
	return Secret{}, ""
}

// baseURL is the vendor's base URL, from the environment before its own, and
// the variable that has it.
func (v vendor) baseURL(env Env) (text, variable string) {
	for _, name := range v.baseEnv {
		text := env.get(name)
		if text == "" {
			continue
		}
		if v.local {
			text = v.serverURL(text)
		}
		if u, err := url.Parse(text); err == nil && strings.Trim(u.Path, "/") == "" {
			u.Path = v.basePath
			text = u.String()
		}
		return text, name
	}
	return v.base, ""
}

// serverURL completes what people write for a server of their own: a host, a
// port, or the address that the server binds to ("0.0.0.0:11434").
func (v vendor) serverURL(text string) string {
	if !strings.Contains(text, "://") {
		own, _ := url.Parse(v.base)
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			host, port = strings.Trim(text, "[]"), own.Port()
		}
		text = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	switch u.Hostname() {
	case "", "0.0.0.0", "::":
		host := "127.0.0.1"
		if u.Port() != "" {
			host = net.JoinHostPort(host, u.Port())
		}
		u.Host = host
	}
	return u.String()
}
