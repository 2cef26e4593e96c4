// Package tool holds what an agent can do on a machine: files, commands, the
// web, a list of tasks, and the servers of the Model Context Protocol; what it
// may do (permissions), and how what it did is taken back (snapshots).
//
// The package decides nothing about a turn. An agent asks a [Tool] what a call
// needs, judges that ([Permissions]), runs the call and journals what came of
// it. Every failure is a [Result] for the model to read: a tool never ends a
// turn.
package tool

import (
	"context"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Tool is one thing that a model can call. Its methods are safe for
// concurrent use.
type Tool interface {
	// Spec describes the tool; it does not change while the tool is in use.
	Spec() Spec
	// Needs says what a call would touch, so that it can be judged before it
	// runs. Its arguments have been checked against the schema. An error means
	// that the call makes no sense, and is told to the model.
	Needs(args []byte) ([]Need, error)
	// Run carries the call out. It obeys its context; what it started ends with
	// it. It gives a result for everything that can go wrong.
	Run(ctx context.Context, call *Call) Result
}

// Spec describes a tool.
type Spec struct {
	// Tool is what the model is told: name, description, schema of arguments.
	ninelives.Tool
	// ReadOnly: a call changes nothing, so that several may run at once and a
	// call that was cut off is simply made again.
	ReadOnly bool
	// Polls: asking the same again is what it is for (reading a terminal,
	// waiting for a job); the loop guard leaves it alone.
	Polls bool
	// Timeout bounds a call; zero means the agent's default.
	Timeout time.Duration
}

// Call is one call of a tool.
type Call struct {
	// ID is unique within the session.
	ID string
	// Arguments is a JSON object that satisfies the schema.
	Arguments []byte
	// Session and Turn are whose call it is.
	Session string
	Turn    int
	// Mode and Profile are what the call was judged under: commands are confined
	// accordingly. Empty means ask and standard.
	Mode    Mode
	Profile Profile
	// Output, if set, is told of output while the call runs, for people to
	// watch. It may be called from any goroutine until Run returns.
	Output func(text string)
}

// Result is what came of a call.
type Result struct {
	// Content is what the model reads. For a failure it begins with "Error: ".
	Content []ninelives.Part
	IsError bool
	// Changes are the files that the call changed, in order.
	Changes []Change
	// Summary says it in a line for people ("wrote 12 lines to main.go").
	Summary string
	// Diff shows people what was changed, in unified form.
	Diff string
	// Saved is the file that holds what was too long for Content; empty if nothing was.
	Saved string
	// Unknown: nobody can say whether the call had its effect.
	Unknown bool
}

// Text joins the text of the content.
func (r Result) Text() string { return ninelives.ToolResult{Content: r.Content}.Text() }

// TextResult is a result of plain text.
func TextResult(text string) Result {
	return Result{Content: []ninelives.Part{ninelives.Text{Text: text}}}
}

// ErrorPrefix begins the text of every failed call. Source: design 000 §3.3.
const ErrorPrefix = "Error: "

// ErrorResult is the result of a call that failed.
func ErrorResult(text string) Result {
	r := TextResult(ErrorPrefix + text)
	r.IsError = true
	return r
}

// NeedKind is a way to touch the world.
type NeedKind string

// The kinds of needs.
const (
	NeedRead    NeedKind = "read"    // Target is a path
	NeedWrite   NeedKind = "write"   // Target is a path
	NeedDelete  NeedKind = "delete"  // Target is a path
	NeedExecute NeedKind = "execute" // Target is a shell command
	NeedFetch   NeedKind = "fetch"   // Target is a URL
	NeedCall    NeedKind = "call"    // Target is what an outside server is asked: "server/tool"
)

// Need is one thing that a call would touch.
type Need struct {
	Kind NeedKind `json:"kind"`
	// Target is what is touched: paths of the workspace are relative and have
	// slashes, others are absolute.
	Target string `json:"target,omitzero"`
	// Directory is where a command runs, as a path of the workspace.
	Directory string `json:"directory,omitzero"`
}

// Change is one file that a call changed.
type Change struct {
	// Path is relative to the workspace, with slashes.
	Path string `json:"path"`
	// Before and After are the states of the file; nil means that there is none.
	Before *FileState `json:"before,omitzero"`
	After  *FileState `json:"after,omitzero"`
}

// FileState is the content of a file, kept by its hash.
type FileState struct {
	// Hash is the SHA-256 of the content, in hexadecimal; for a symbolic link,
	// of its target.
	Hash string `json:"hash"`
	// Mode holds the type and permission bits (io/fs).
	Mode uint32 `json:"mode"`
	Size int64  `json:"size"`
	// Unkept: the content was too large to be kept, so it cannot be restored.
	Unkept bool `json:"unkept,omitzero"`
}

// Blobs keeps contents by their hash. The journal's has them on the disk.
type Blobs interface {
	// Put keeps the content and gives its SHA-256 in hexadecimal. It is durable
	// when Put returns.
	Put(ctx context.Context, content []byte) (hash string, err error)
	// Get gives the content back; an error if it is not there or was changed.
	Get(ctx context.Context, hash string) ([]byte, error)
}

// Previewer is a Tool that can show people what a call would do, before they
// are asked: a unified diff, or the command. It changes nothing.
type Previewer interface {
	Preview(ctx context.Context, args []byte) (string, error)
}

// Standing is what is known of a call that was cut off.
type Standing string

// The standings of a call.
const (
	StandingDone       Standing = "done"        // it had its effect
	StandingNotStarted Standing = "not_started" // it had none
	StandingUnknown    Standing = "unknown"
)

// Prober is a Tool that can find out what became of a call that a crash cut
// off, by what is there now (a file's hash, the record of a supervised child).
type Prober interface {
	// Mark is what Probe will need to know; it is taken, and made durable, just
	// before the call runs.
	Mark(ctx context.Context, call *Call) ([]byte, error)
	// Probe tells what became of the call. With StandingDone, Result is what it
	// gave; with StandingUnknown what is known all the same, if anything.
	Probe(ctx context.Context, call *Call, mark []byte) (Standing, Result)
}
