package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/ninelives-ai/ninelives/provider"
)

// file is what one file may hold. Its field tags are the published names and
// descriptions (docs/config.schema.json).
type file struct {
	Model          ref                  `json:"model,omitzero" jsonschema:"The first model to ask: the name of a preset, provider/model, or a candidate. Default: what the environment offers."`
	FallbackModels []ref                `json:"fallbackModels,omitempty" jsonschema:"The models to ask when those before them cannot answer, in this order. A broken one is skipped with a warning."`
	ModelPresets   map[string]Candidate `json:"modelPresets,omitempty" jsonschema:"Candidates by name."`
	Catalogue      map[string]Candidate `json:"catalogue,omitempty" jsonschema:"What models can do, by provider/model, where it is not as is known."`
	Window         int                  `json:"window,omitempty" jsonschema:"Context window in tokens of every model that does not set its own. Default: what is known about each."`
	Policy         policy               `json:"policy,omitzero" jsonschema:"How failures are healed."`
	Consent        consent              `json:"consent,omitzero" jsonschema:"Whom requests may be sent to."`
	Network        network              `json:"network,omitzero" jsonschema:"The way to the providers."`
	Agent          agentFile            `json:"agent,omitzero" jsonschema:"What the agent may do, and its bounds."`
	Gateway        gatewayFile          `json:"gateway,omitzero" jsonschema:"What ninelives serve does: where it listens, for whom, and what clients can ask for."`
}

// Candidate is a model and how to reach it.
type Candidate struct {
	Provider    string            `json:"provider,omitempty" jsonschema:"The vendor or server, such as anthropic. Any other name needs a base_url."`
	Model       string            `json:"model,omitempty" jsonschema:"The provider's own model name. Default: the provider's default model."`
	BaseURL     string            `json:"base_url,omitempty" jsonschema:"Root of the API, such as https://llm.example.com/v1."`
	Key         secret            `json:"key,omitzero" jsonschema:"The API key, best written as ${VARIABLE}. Default: the vendor's variable."`
	KeyEnv      string            `json:"key_env,omitempty" jsonschema:"The environment variable that holds the key."`
	Account     string            `json:"account,omitempty" jsonschema:"Groups keys that share a balance."`
	Protocol    string            `json:"protocol,omitempty" jsonschema:"openai-chat, openai-responses, anthropic-messages or gemini. Default: by base_url."`
	Protocols   []string          `json:"protocols,omitempty" jsonschema:"Further protocols that the server speaks at the same base_url. A gateway's client that speaks one of them is passed through to it. Default: what is known of the vendor."`
	Dialect     string            `json:"dialect,omitempty" jsonschema:"The server's dialect, such as vllm. Default: by base_url."`
	APIVersion  string            `json:"api_version,omitempty" jsonschema:"Azure's api-version."`
	Window      int               `json:"window,omitempty" jsonschema:"Context window in tokens."`
	MaxOutput   int               `json:"max_output,omitempty" jsonschema:"Largest answer in tokens."`
	Tools       *bool             `json:"tools,omitempty" jsonschema:"Whether it can call tools."`
	Images      *bool             `json:"images,omitempty" jsonschema:"Whether it takes images."`
	Files       *bool             `json:"files,omitempty" jsonschema:"Whether it takes files."`
	Prefill     *bool             `json:"prefill,omitempty" jsonschema:"Whether it continues a trailing assistant message."`
	Schema      string            `json:"schema,omitempty" jsonschema:"Strongest enforcement of structured output: json_schema, tool, json_object or none."`
	Replay      string            `json:"replay,omitempty" jsonschema:"Rule for earlier reasoning: ignore, forbid, require_on_tool_calls or require_always."`
	ReplayField string            `json:"replay_field,omitempty" jsonschema:"Wire field of earlier reasoning, such as reasoning_content."`
	Price       *Price            `json:"price,omitempty" jsonschema:"Prices in US dollars per million tokens."`
	Headers     map[string]string `json:"headers,omitempty" jsonschema:"Further headers of every request."`
}

// Price is in US dollars per million tokens.
type Price struct {
	Input      float64 `json:"input,omitempty"`
	Output     float64 `json:"output,omitempty"`
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
}

type consent struct {
	RemoteFallback *bool     `json:"allow_remote_fallback,omitempty" jsonschema:"Whether a chain that begins on this machine may leave it. Default: false."`
	Vendors        *[]string `json:"vendors,omitempty" jsonschema:"The only providers that may be asked. Default: all."`
}

type network struct {
	CAFile string `json:"ca_file,omitempty" jsonschema:"PEM file of further root certificates. Default: NINELIVES_CA_FILE."`
	Proxy  string `json:"proxy,omitempty" jsonschema:"URL of the proxy. Default: the usual proxy variables."`
}

// policy is a preset and what is set differently.
type policy struct {
	Preset    string    `json:"preset,omitempty" jsonschema:"default, interactive, background, catbuddy, codebuddy or hardened."`
	RetryMode string    `json:"retry_mode,omitempty" jsonschema:"standard, or persistent for work that nobody waits for."`
	Deadline  *duration `json:"deadline,omitempty" jsonschema:"Total time of a call, whether it is watched or not."`
	Buffered  *duration `json:"buffered,omitempty" jsonschema:"Total time of a call whose answer counts only as a whole."`
	Streamed  *duration `json:"streamed,omitempty" jsonschema:"Total time of a call whose stream is watched."`
	Mode      string    `json:"mode,omitempty" jsonschema:"What happens to a stream that breaks: restart, continue, hold or fail."`
	Failover  *bool     `json:"failover,omitempty" jsonschema:"Whether other candidates are asked at all."`
	Hedge     *duration `json:"hedge,omitempty" jsonschema:"Start the next candidate beside one that is silent for so long. Default: off."`
	Budget    budget    `json:"budget,omitzero" jsonschema:"What one call may cost over all its candidates. 0 means no cap."`
	Backoff   backoff   `json:"backoff,omitzero" jsonschema:"The wait before a retry that has no hint: random up to min(cap, base doubled each time)."`
	Clocks    clocks    `json:"clocks,omitzero" jsonschema:"The clocks of one attempt."`
	Breaker   breaker   `json:"breaker,omitzero" jsonschema:"When a failing candidate is not asked for a while."`
	Content   content   `json:"content,omitzero" jsonschema:"How often an answer's content is healed."`

	Concurrency concurrency `json:"concurrency,omitzero" jsonschema:"How many attempts one candidate is asked at once."`
}

type concurrency struct {
	InFlight *int      `json:"in_flight,omitempty" jsonschema:"Attempts under way; 0 means no limit. Default: 64, in the gateway 512."`
	Queue    *int      `json:"queue,omitempty" jsonschema:"Calls that may wait for a place. Default: 64, in the gateway 512."`
	Wait     *duration `json:"wait,omitempty" jsonschema:"How long they may. Default: 5s."`
}

type budget struct {
	Faults   *int      `json:"faults,omitempty" jsonschema:"Failed attempts."`
	Tries    *int      `json:"tries,omitempty" jsonschema:"Failed attempts per candidate."`
	Others   *int      `json:"others,omitempty" jsonschema:"Candidates besides the first."`
	Requests *int      `json:"requests,omitempty" jsonschema:"Requests in all."`
	Wait     *duration `json:"wait,omitempty" jsonschema:"Longest single wait."`
	Tokens   *int      `json:"tokens,omitempty" jsonschema:"Tokens after which a call is healed no more."`
	Money    *float64  `json:"money,omitempty" jsonschema:"US dollars after which a call is healed no more."`
}

type backoff struct {
	Base *duration `json:"base,omitempty"`
	Cap  *duration `json:"cap,omitempty"`
}

type clocks struct {
	Dial       *duration `json:"dial,omitempty" jsonschema:"Connection and TLS."`
	Headers    *duration `json:"headers,omitempty" jsonschema:"From the request's last byte to the response's headers."`
	FirstEvent *duration `json:"first_event,omitempty" jsonschema:"To the first piece of the answer."`
	Liveness   *duration `json:"liveness,omitempty" jsonschema:"Longest silence, any byte counts."`
	Progress   *duration `json:"progress,omitempty" jsonschema:"Longest wait between pieces of the answer."`
	Attempt    *duration `json:"attempt,omitempty" jsonschema:"The whole attempt."`
	SoftFirst  *duration `json:"soft_first,omitempty" jsonschema:"Silence after which the next candidate starts beside this one."`
	MinRate    *float64  `json:"min_rate,omitempty" jsonschema:"Slowest stream, in bytes of content per second."`
	RateWindow *duration `json:"rate_window,omitempty" jsonschema:"Over how long the rate is taken."`
}

type breaker struct {
	Consecutive *int      `json:"consecutive,omitempty" jsonschema:"Failures in a row."`
	Open        *duration `json:"open,omitempty" jsonschema:"For how long it is not asked."`
}

type content struct {
	Empty         *int `json:"empty,omitempty" jsonschema:"Steps after an empty answer."`
	Continuations *int `json:"continuations,omitempty" jsonschema:"Continuations of a cut answer."`
	Repairs       *int `json:"repairs,omitempty" jsonschema:"Rounds to bring structured output into form."`
}

// duration is a time with its unit.
type duration time.Duration

// UnmarshalYAML reads "30s", "1m30s", "500ms".
func (d *duration) UnmarshalYAML(n ast.Node) error {
	text, ok := n.(*ast.StringNode)
	if !ok {
		what := article(n.GetToken())
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			return &placed{n.GetToken(), what + " needs a unit: write it like 30s or 2m"}
		}
		return &placed{n.GetToken(), fmt.Sprintf("expected a duration like 30s or 2m, not %s", what)}
	}
	t, err := time.ParseDuration(strings.TrimSpace(text.Value))
	if err != nil || t < 0 {
		return &placed{n.GetToken(), fmt.Sprintf("%s is no duration: write it like 30s or 2m", article(n.GetToken()))}
	}
	*d = duration(t)
	return nil
}

// secret is a credential in a file.
type secret struct{ provider.Secret }

// UnmarshalYAML reads the text of a credential.
func (s *secret) UnmarshalYAML(n ast.Node) error {
	switch n := n.(type) {
	case *ast.StringNode:
		s.Secret = provider.NewSecret(n.Value)
	case *ast.IntegerNode:
		s.Secret = provider.NewSecret(n.GetToken().Value)
	default:
		return &placed{n.GetToken(), "expected a key as text"}
	}
	return nil
}

// IsZero reports that there is none.
func (s secret) IsZero() bool { return s.Empty() }

// ref is a model by name or written out.
type ref struct {
	name      string
	candidate *Candidate
	where     Problem // its place, without a message
}
