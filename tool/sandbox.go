package tool

// confineArgument starts a supervisor's other role: it shuts itself into the
// sandbox and becomes the command.
const confineArgument = "confined"

// confineFD is the descriptor that it reads its confinement from.
const confineFD = 3

// confinement is what a sandboxed command may touch. It is as much as Landlock
// can express: trees are allowed, nothing below an allowed tree is forbidden.
type confinement struct {
	Read  []string `json:"read"`
	Write []string `json:"write"`
	// NoConnect: no TCP connections.
	NoConnect bool `json:"no_connect,omitzero"`
}

// Sandbox says what commands are confined by.
type Sandbox struct {
	// On: commands of all modes but full with the trusted profile are confined.
	On bool
	// Network: connections can be denied too (in the restricted profile).
	Network bool
	// Why says in a line what holds, and if not all does, why not.
	Why string
}
