package tool

// Mode is how much an agent may do without asking.
type Mode string

// The permission modes.
const (
	ModePlan     Mode = "plan"      // nothing is changed: only reading
	ModeAsk      Mode = "ask"       // changes and commands are asked for (the default)
	ModeAutoEdit Mode = "auto-edit" // files of the workspace are changed without asking, the rest is asked for
	ModeFull     Mode = "full"      // nothing is asked for but what the profile and the floor forbid
)

// Modes lists the modes in the order in which a key cycles through them.
func Modes() []Mode { return []Mode{ModeAsk, ModeAutoEdit, ModePlan, ModeFull} }

// Profile is how much a mode is trusted with. Source: design 001 ("permission
// profiles + catastrophic-command denies").
type Profile string

// The profiles. In every one of them the floor holds: what is catastrophic is
// denied whatever mode and rules say.
const (
	ProfileRestricted Profile = "restricted" // no commands, no network, no deletion; files inside the workspace only
	ProfileStandard   Profile = "standard"   // the default: what deletes, installs, pushes or reaches the network is asked for even in auto-edit
	ProfileTrusted    Profile = "trusted"    // only the mode is asked
)

// Action is what is done with a call.
type Action string

// The actions.
const (
	ActionAllow Action = "allow"
	ActionAsk   Action = "ask"
	ActionDeny  Action = "deny"
)

// Rule allows, asks for or denies calls. The strictest rule that matches wins;
// a rule beats the mode, but not plan mode, the restricted profile or the floor.
type Rule struct {
	Action Action `json:"action"`
	// Tool is a tool's name, with * for any characters; empty means every tool.
	Tool string `json:"tool,omitzero"`
	// Target is a pattern of what is touched: a path with * and **, a host, or
	// the beginning of a command ("git status", "go test *"); empty means all.
	Target string `json:"target,omitzero"`
}

// Verdict is what is done with a call, and why.
type Verdict struct {
	Action Action `json:"action"`
	// Why is one line for people and for the model.
	Why string `json:"why,omitzero"`
	// Floor: no mode, rule or person can lift it.
	Floor bool `json:"floor,omitzero"`
	// Offer is the rule that "always allow this" would add; nil if it should
	// not be offered.
	Offer *Rule `json:"offer,omitzero"`
}

// Permissions judges calls. It is a value: what it says depends on nothing else.
type Permissions struct {
	Mode    Mode    `json:"mode,omitzero"`
	Profile Profile `json:"profile,omitzero"`
	Rules   []Rule  `json:"rules,omitzero"`
	// Home is the user's home directory, for what lies under it; empty if unknown.
	Home string `json:"-"`
	// Workspace is the directory that relative paths are in, absolute; empty if
	// unknown: then every absolute path counts as outside.
	Workspace string `json:"-"`
	// Private are files and directories of the program itself (journal,
	// configuration, trust, hooks), absolute: nothing may write there, in no mode.
	// The usual places under Home count without being named.
	Private []string `json:"-"`
}
