// Package config reads what a user has set: one YAML file, its environment
// references, and flags on top.
//
//	file.go    the settings, as a file has them
//	load.go    finding, reading and layering files
//	text.go    the text of a file, within limits
//	source.go  one file as a tree, and where in it a problem is
//	anchors.go YAML's aliases and merges, written out
//	names*.go  settings under their other names
//	expand.go  ${VARIABLES}, filled in
//	policy.go  the healing policy that the settings come to
//	chain.go   the models that the settings come to
//	agent.go   the agent's settings, and what they come to (agent_layer.go)
//	trust.go   which files of projects the user trusts; untrusted.go what is
//	           left out of the others
//	gateway.go what the section gateway comes to (gateway_file.go,
//	           gateway_layer.go, listen.go)
//	watch.go   whether files change
//	keys.go    the variables that hold keys
//
// What is wrong in a file is told with its place: "ninelives.yaml:3:5: …". A
// setting that is not known is an error, as it is mostly a misspelt one; a
// broken preset or fallback costs only itself.
package config
