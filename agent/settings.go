package agent

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// Settings are the numbers that an agent goes by. They are a value: copy,
// change, hand over. The zero value is not useful; start from DefaultSettings.
// The model cannot lift any of them; the user may grant a turn that was stopped
// another full quota.
type Settings struct {
	Guard      GuardSettings
	Compaction CompactionSettings
	Memory     MemorySettings
	// Permissions say what may be done without asking.
	Permissions tool.Permissions
	// Iterations caps the answers of a turn; at the cap the model is asked, without
	// tools, what was done and what remains. Zero means no cap of its own.
	Iterations int
	// Deadline bounds a turn, and everything in it; zero means the guard's Duration.
	Deadline time.Duration
	// ToolTimeout bounds a call whose tool sets no bound of its own.
	ToolTimeout time.Duration
	// ParallelCalls is how many read-only calls run at once.
	ParallelCalls int
	// ResultLines and ResultBytes bound what a result puts before the model; the
	// rest is in a file that the result names.
	ResultLines int
	ResultBytes int
	// Instructions are added to the system prompt.
	Instructions string
	// Output is the form that the last answer of a turn must satisfy; nil for
	// free text.
	Output *ninelives.Output
	// Depth is how deep subagents may start subagents.
	Depth int
}

// GuardSettings are the caps of a turn and the thresholds of the loop guard. A
// number that is zero is no cap, or turns off what it is the threshold of.
//
// Source: design 001, layer 3, for all that has a name there; the windows of
// the loop guard are the design's, section 6.
type GuardSettings struct {
	Events      int            // stream events; codebuddy.agent.maxEventCount
	Calls       int            // calls of tools; codebuddy.agent.maxToolInvocations
	Duration    time.Duration  // codebuddy.agent.maxDurationMinutes
	Cost        float64        // US dollars
	PerTool     map[string]int // calls of one tool; codebuddy.agent.limits.*
	SameFile    int            // edits of one file; codebuddy.agent.fileEditLoopThreshold
	Rate        int            // calls per minute, all tools; ToolRateLimiter
	RatePerTool int            // calls per minute, one tool
	// RateWait is the longest that a call waits for the rate limiter; one that
	// would have to wait longer is refused to the model.
	RateWait time.Duration

	// The same call with the same result: after LoopNotice of the last
	// LoopWindow the model is told, after LoopStop the turn is stopped.
	LoopWindow int
	LoopNotice int
	LoopStop   int
	// CycleLength and CycleRepeats: a cycle of 2 to CycleLength calls that comes
	// CycleRepeats times in a row stops the turn.
	CycleLength  int
	CycleRepeats int
	// ChantLength and ChantRepeats: a piece of text of ChantLength characters
	// that comes ChantRepeats times without a change stops the answer.
	ChantLength  int
	ChantRepeats int
	// Denials is how many denied calls in a row end the turn.
	Denials int
}

// CompactionSettings keep a request inside the window of its candidate.
//
// Source: design 001, layer 4; where its picture differs from its table, the table.
type CompactionSettings struct {
	Warn float64 // share of the window at which it is logged and prepared
	Act  float64 // share at which tier 1 runs, and the others until usage is under it
	// Protected is how many of the last messages are never summarised; with fewer
	// than Minimum messages nothing is.
	Protected int
	Minimum   int
	// StripOver is the length in characters over which tier 1 strips a result.
	StripOver int
	// KeepUser is how many tokens of user messages stay word for word.
	KeepUser int
	// Gain is the share by which a summary must shrink the context; one that does
	// not is a strike, and after Strikes of them nothing is summarised any more.
	Gain    float64
	Strikes int
	// Overlap is how many messages the chunks of tier 2 share, Chunk how many
	// tokens a chunk has: more where there would be over 8, less in a small window.
	Overlap int
	Chunk   int
	// Window overrides what is known of the model's context; zero means what the
	// candidate says, and DefaultWindow where it says nothing.
	Window        int
	DefaultWindow int
}

// MemorySettings steer what is remembered beyond a session.
type MemorySettings struct {
	Off bool
	// Idle is how long a session must be idle before its history is archived.
	Idle time.Duration
	// Every is the least time between two refinements of what is remembered.
	Every time.Duration
	// MaxBytes bounds MEMORY.md as it is put into the prompt.
	MaxBytes int
}

// DefaultSettings are the design's numbers.
func DefaultSettings() Settings {
	return Settings{
		Guard: GuardSettings{
			Events:   15000,
			Calls:    2000,
			Duration: time.Hour,
			PerTool: map[string]int{
				"edit_file": 75, "delete_file": 30, "run_command": 100, "run_terminal_command": 500, "web_search": 60,
			},
			SameFile: 20,
			Rate:     600, RatePerTool: 200, RateWait: 5 * time.Second,
			LoopWindow: 10, LoopNotice: 3, LoopStop: 5,
			CycleLength: 5, CycleRepeats: 5,
			ChantLength: 50, ChantRepeats: 10,
			Denials: 5,
		},
		Compaction: CompactionSettings{
			Warn: 0.8, Act: 0.9,
			Protected: 4, Minimum: 6,
			StripOver: 200, KeepUser: 20000,
			Gain: 0.05, Strikes: 2,
			Overlap: 2, Chunk: 12000,
			DefaultWindow: 16000,
		},
		Memory:        MemorySettings{Idle: 10 * time.Minute, Every: 24 * time.Hour, MaxBytes: 16 << 10},
		Permissions:   tool.Permissions{Mode: tool.ModeAsk, Profile: tool.ProfileStandard},
		Iterations:    500,
		ToolTimeout:   2 * time.Minute,
		ParallelCalls: 8,
		ResultLines:   2000,
		ResultBytes:   50 << 10,
		Depth:         1,
	}
}
