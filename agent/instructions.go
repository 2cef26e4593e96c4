package agent

// Instructions reads what the user and the project want every model to know:
// AGENTS.md and CLAUDE.md, and the MEMORY.md of the user and of the project.
// dir is the workspace, home the user's home directory ("" for none). It gives
// the text for the system prompt and the files that it was read from, in order.
func Instructions(dir, home string, memory MemorySettings) (string, []string, error) {
	return "", nil, nil
}
