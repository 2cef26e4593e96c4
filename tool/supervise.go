package tool

import "time"

// Commands run under a supervisor: a small process (this very program, started
// with other arguments) between the agent and the command. It holds a pipe to
// the agent, so it learns of the agent's death even where the agent had no
// time to say anything (kill -9, out of memory), and takes the command and all
// that the command started with it. What became of the command it writes into
// a record, which outlives both.
//
//	agent ──control──▶ supervisor ──▶ command ──▶ …
//	      ◀──report───            ◀──output──
//
// The agent closes the control pipe by dying. Descendants cannot escape by
// daemonising: on Linux their next parent is the supervisor.

// grace is how long a process has between SIGTERM and SIGKILL.
const grace = 2 * time.Second

// work is what a supervisor is asked to run: the first line on the control pipe.
type work struct {
	Args   []string `json:"args"`
	Dir    string   `json:"dir"`
	Env    []string `json:"env"`
	Record string   `json:"record,omitzero"` // directory; empty for none
	// Call is whose command it is, for people who look into the record.
	Call string `json:"call,omitzero"`
	// Terminal: standard input is a terminal, which becomes the command's own.
	Terminal bool `json:"terminal,omitzero"`
	// Confine is the sandbox; nil for none.
	Confine *confinement `json:"confine,omitzero"`
}

// report is a line on the report pipe.
type report struct {
	// Pid is the command's, in the first report.
	Pid int     `json:"pid,omitzero"`
	End *ending `json:"end,omitzero"`
}
