package agent

// State is what the entries of a session come to. It is built by adding
// entries one after the other and by nothing else.
type State struct{}
