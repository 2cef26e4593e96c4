package ninelives

// Candidate describes one way to get an answer: provider, model, credential
// and what they can do. It is data; nothing decides on the provider's name.
type Candidate struct {
	// Provider is the short name of the vendor or server, such as "anthropic".
	Provider string
	// Model is the provider's own model name.
	Model string
	// Key identifies the credential without revealing it (a short hash).
	Key string
	// Account groups credentials that share a balance; empty means Key.
	Account string
	// Host is the endpoint's host and port.
	Host string
	// Local says that requests do not leave this machine.
	Local bool
	// LocalModel says that the model itself runs on this machine and is given
	// more time. A proxy there to somebody else's models is Local and no
	// LocalModel.
	LocalModel bool
	Protocol   Protocol
	Capabilities
}

// Name is "provider/model".
func (c Candidate) Name() string { return c.Provider + "/" + c.Model }

// Capabilities are what a candidate can do, as far as is known.
type Capabilities struct {
	// Window is the context window in tokens. WindowSource says how it was found:
	// "setting", "exact", "family", "learnt" or "default".
	Window       int
	WindowSource string
	// MaxOutput is the largest answer in tokens; 0 means unknown.
	MaxOutput int
	Tools     bool
	Images    bool
	Files     bool
	// Prefill: a trailing assistant message is continued.
	Prefill bool
	// Schema is the strongest native enforcement of an Output.
	Schema SchemaSupport
	// Replay is the rule for sending reasoning back.
	Replay ReplayRule
	// ReplayField is the wire field of replayed reasoning.
	ReplayField string
	Price       Price
}

// SchemaSupport is how a candidate enforces structured output by itself.
type SchemaSupport string

// The levels of schema support; the empty one means prompt only.
const (
	SchemaNone   SchemaSupport = ""
	SchemaObject SchemaSupport = "json_object" // valid JSON, no schema
	SchemaTool   SchemaSupport = "tool"        // a forced tool call
	SchemaNative SchemaSupport = "json_schema"
)

// ReplayRule says what a candidate wants to see of its own earlier reasoning.
type ReplayRule string

// The replay rules.
const (
	ReplayIgnore             ReplayRule = "ignore" // harmless, saved
	ReplayForbid             ReplayRule = "forbid"
	ReplayRequireOnToolCalls ReplayRule = "require_on_tool_calls"
	ReplayRequireAlways      ReplayRule = "require_always"
)

// Price is in US dollars per million tokens; zero means unknown or free.
type Price struct {
	Input      float64
	Output     float64
	CacheRead  float64
	CacheWrite float64
}

// Cost is the price of a usage in US dollars.
func (p Price) Cost(u Usage) float64 {
	uncached := u.TotalInput() - u.Cached - u.CacheWrite
	if uncached < 0 {
		uncached = 0
	}
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	return (float64(uncached)*p.Input + float64(u.Cached)*read +
		float64(u.CacheWrite)*write + float64(u.TotalOutput())*p.Output) / 1e6
}
