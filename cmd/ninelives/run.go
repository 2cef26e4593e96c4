package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// The output formats of run.
const (
	formatText       = "text"
	formatJSON       = "json"
	formatStreamJSON = "stream-json"
)

func (p *process) run() *cobra.Command {
	r := &running{process: p}
	cmd := &cobra.Command{
		Use:   "run [task]",
		Short: "Work on a task in this directory, without a terminal",
		Long: `Work on a task in this directory and end. What the model may do without being
asked is set by --permission-mode and --allow; nobody is asked, so everything
else is denied, which the model is told.

The task is written to disk before anything is done with it. If it cannot be
finished, the command says how to go on with it.`,
		Example: `  ninelives run "Add a --json flag to the list command"
  ninelives run --permission-mode auto-edit --allow "run_command" "Make the tests pass"
  git diff | ninelives run --output-format json "Review this change"
  ninelives run --continue "Now document it"
  ninelives run --resume ID`,
		RunE: func(cmd *cobra.Command, words []string) error {
			r.words = words
			return r.run(cmd.Context(), r.mistakes(cmd))
		},
	}
	r.work.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.format, "output-format", formatText, "text, json or stream-json")
	f.BoolVar(&r.last, "continue", false, "go on with the last session of this directory")
	f.StringVar(&r.resume, "resume", "", "go on with the session with this id; without a task, with what it was at")
	f.StringVar(&r.schema, "output-schema", "", "JSON schema file that the result must satisfy")
	f.IntVar(&r.maxTurns, "max-turns", 0, "most requests to the model (default: the configuration's)")
	f.Float64Var(&r.maxCost, "max-cost", 0, "most US dollars")
	return cmd
}

// running is one run of run.
type running struct {
	*process
	work   work
	words  []string
	format string
	last   bool
	resume string

	schema   string
	maxTurns int
	maxCost  float64

	start time.Time
	tell  runTeller
}

// runTeller tells a run while it happens. An error is one of writing.
type runTeller interface {
	begin(session string, s *shop) error
	event(agent.Event) error
	end(result) error
}

// result is how a run ended.
type result struct {
	session string
	// ended is the end of the turn; nil if none came to one.
	ended *agent.Ended
	err   error
	code  int
	// kept says that the session has the task.
	kept bool
}

// mistakes are what is wrong with the values of flags.
func (r *running) mistakes(cmd *cobra.Command) error {
	errs := []error{r.work.mistakes(cmd)}
	if !slices.Contains([]string{formatText, formatJSON, formatStreamJSON}, r.format) {
		errs = append(errs, usagef("--output-format %q is unknown: use text, json or stream-json", r.format))
		r.format = formatText
	}
	if r.last && r.resume != "" {
		errs = append(errs, usagef("--continue and --resume exclude each other: leave one out"))
	}
	if cmd.Flags().Changed("resume") && strings.TrimSpace(r.resume) == "" {
		errs = append(errs, usagef("--resume is empty: give it the id of a session (ninelives sessions lists them)"))
	}
	if cmd.Flags().Changed("output-schema") && strings.TrimSpace(r.schema) == "" {
		errs = append(errs, usagef("--output-schema is empty: give it a file, or leave it out"))
	}
	if r.maxTurns < 0 || cmd.Flags().Changed("max-turns") && r.maxTurns == 0 {
		errs = append(errs, usagef("--max-turns %d leaves nothing to do: use 1 or more", r.maxTurns))
	}
	if r.maxCost < 0 || cmd.Flags().Changed("max-cost") && r.maxCost == 0 {
		errs = append(errs, usagef("--max-cost %g leaves nothing to do: use more than 0", r.maxCost))
	}
	return errors.Join(errs...)
}

// run works on the task, unless a flag holds a mistake: the task is kept all
// the same. Its errors have been told when it returns.
func (r *running) run(ctx context.Context, mistake error) error {
	r.start = time.Now()
	if r.format == formatText {
		r.tell = newRunShow(r.process, r.start)
	} else {
		r.tell = &runLines{out: r.stdout, start: r.start, stream: r.format == formatStreamJSON}
	}
	kept := r.openJournal("task")
	defer kept.close()

	task, lost := r.task(ctx)
	if lost != nil && len(task.Parts) == 0 {
		return r.fail(result{err: cmp.Or(mistake, lost)})
	}
	// The task is on the disk before anything else is done with it.
	id, err := r.keep(context.WithoutCancel(ctx), kept, task)
	if err != nil {
		return r.fail(result{err: errors.Join(mistake, err)})
	}
	out := result{session: id, kept: kept.j != nil && id != ""}
	if out.err = errors.Join(mistake, cmp.Or(lost, ctx.Err())); out.err != nil {
		return r.fail(out)
	}
	out = r.carryOut(ctx, kept, out, task)
	if out.kept {
		if err := kept.j.Gone(); err != nil {
			out.kept = false
			fmt.Fprintln(r.stderr, "ninelives: the session is not kept: "+oneLine(err.Error()))
		}
	}
	return r.fail(out)
}

// carryOut opens everything that the task needs and works on it.
func (r *running) carryOut(ctx context.Context, kept *kept, out result, task ninelives.Message) result {
	var output *ninelives.Output
	if r.schema != "" {
		if output, out.err = readSchema(ctx, "--output-schema", r.schema); out.err != nil {
			return out
		}
	}
	// There is one turn: a tool that comes after its first request comes too late.
	r.work.settled = r.start.Add(cmp.Or(r.work.choice.deadline.Duration, time.Hour))
	shop, err := r.work.open(ctx, r.process, kept, func(s *agent.Settings) {
		if r.maxTurns > 0 {
			s.Iterations = r.maxTurns
		}
		if r.maxCost > 0 {
			s.Guard.Cost = r.maxCost
		}
		if most := r.work.choice.deadline.Duration; most > 0 { // what was read counts
			s.Deadline = max(most-time.Since(r.start), time.Millisecond)
		}
		s.Output = output
	})
	if err != nil {
		out.err = err
		return out
	}
	defer shop.close()
	var session *agent.Session
	if out.session != "" {
		session, err = shop.agent.Resume(ctx, out.session)
	} else {
		session, err = shop.agent.Open(ctx)
	}
	if err != nil {
		out.err = err
		return out
	}
	defer func() { _ = session.Close() }()
	if err := r.tell.begin(session.ID(), shop); err != nil {
		out.err = readerGone(err)
		return out
	}
	for ev, err := range r.turn(ctx, session, out.session != "", task) {
		if err != nil {
			out.err = err
			if errors.Is(err, agent.ErrNothing) {
				out.kept = false // the error says how to go on
				out.err = usagef("session %s has nothing to go on with: give it a task, as in: ninelives run --resume %s \"…\"", session.ID(), session.ID())
			}
			return out
		}
		if e, is := ev.(agent.Ended); is {
			out.ended = &e
			continue
		}
		if err := r.tell.event(ev); err != nil {
			out.err = readerGone(err)
			return out // which ends the turn
		}
	}
	return out
}

// turn is what is to be done in the session: the task, which it has if it is
// kept, else what the session was at, else what was queued in it.
func (r *running) turn(ctx context.Context, session *agent.Session, kept bool, task ninelives.Message) iter.Seq2[agent.Event, error] {
	if !kept {
		return session.Turn(ctx, task)
	}
	waiting := session.Queued()
	said := slices.ContainsFunc(waiting, func(in agent.Input) bool { return in.Via != agent.ViaQueue })
	if session.Status().Failed == nil && len(waiting) > 0 && !said {
		return session.Next(ctx)
	}
	return session.Continue(ctx)
}

// task is what is asked: the words after what came on standard input. It has
// no parts where a session is to go on with what it was at. With an error it is
// the words, with a remark about what could not be read.
func (r *running) task(ctx context.Context) (ninelives.Message, error) {
	words := strings.ToValidUTF8(strings.TrimSpace(strings.Join(r.words, " ")), "\uFFFD")
	if words == "-" {
		words = ""
	}
	if most := r.work.choice.deadline.Duration; most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.start.Add(most))
		defer cancel()
	}
	text, err := r.readStdin(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("standard input did not end within the deadline of %s: %w", r.work.choice.deadline.Duration, err)
	}
	switch {
	case err != nil && words == "":
		return ninelives.Message{}, err
	case err != nil:
		return ninelives.UserText(words + "\n\n[What was to go before this on standard input could not be read.]"), err
	}
	text = withContext(text, words)
	switch {
	case strings.TrimSpace(text) != "":
		return ninelives.UserText(text), nil
	case r.last || r.resume != "":
		return ninelives.Message{}, nil
	}
	return ninelives.Message{}, usagef(`nothing to do: write a task, as in: ninelives run "Fix the typo in README.md"`)
}

// keep writes the task into its session and gives the session's id; an empty
// one where there is no journal.
func (r *running) keep(ctx context.Context, kept *kept, task ninelives.Message) (id string, err error) {
	if kept.j == nil {
		if r.last || r.resume != "" {
			return "", &usageError{kept.err}
		}
		return "", nil
	}
	dir, err := workDirectory()
	if err != nil {
		return "", err
	}
	if r.last {
		if r.resume, err = lastSession(ctx, kept, dir); err != nil {
			return "", err
		}
		if r.resume == "" {
			return "", usagef("--continue: there is no session of this directory yet: leave --continue out to begin one")
		}
	}
	clerk := agent.New(nil, agent.Journal(kept.j), agent.Workspace(dir), agent.Version(buildVersion()))
	var session *agent.Session
	if r.resume != "" {
		session, err = clerk.Resume(ctx, r.resume)
	} else {
		session, err = clerk.Open(ctx)
	}
	switch {
	case errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrAmbiguous):
		return "", usagef("--resume: %v: see ninelives sessions", err)
	case errors.Is(err, journal.ErrTaken):
		return "", usagef("%v", err)
	case err != nil:
		return "", fmt.Errorf("the task is not kept, and nothing was done: %w", err)
	}
	defer func() { _ = session.Close() }()
	if len(task.Parts) > 0 {
		if _, err := session.Accept(ctx, task); err != nil {
			return "", fmt.Errorf("the task is not kept, and nothing was done: %w", err)
		}
	}
	return session.ID(), nil
}

// lastSession is the session of the directory that was added to last, among
// those in which something was said; empty if there is none.
func lastSession(ctx context.Context, kept *kept, dir string) (string, error) {
	for _, limit := range []int{20, -1} {
		list, _, err := kept.j.Sessions(ctx, journal.SessionFilter{Labels: map[string]string{labelDirectory: dir}, Without: []string{agent.LabelCall}, Limit: limit})
		if err != nil {
			return "", err
		}
		if i := slices.IndexFunc(list, begun); i >= 0 {
			return list[i].ID, nil
		}
	}
	return "", nil
}

// fail tells the end and gives the exit code.
func (r *running) fail(out result) error {
	switch {
	case out.err != nil:
		out.code = exitCode(out.err)
	case out.ended != nil:
		out.code = endCode(out.ended.End)
	default:
		out.err, out.code = ninelives.ErrNoEnd, exitInternal
	}
	if err := r.tell.end(out); err != nil && !brokenPipe(err) {
		if out.kept {
			return fmt.Errorf("%w (it is kept: ninelives sessions %s): %w", errUnwritten, out.session, err)
		}
		return fmt.Errorf("%w: %w", errUnwritten, err)
	}
	if out.code == exitOK {
		return nil
	}
	return &ended{out.code}
}

// endCode is the exit code of a turn that ended so.
func endCode(e agent.End) int {
	switch e.Reason {
	case agent.ReasonComplete:
		return exitOK
	case agent.ReasonRefused:
		return exitRefused
	case agent.ReasonTruncated:
		return exitTruncated
	case agent.ReasonEmpty:
		return exitEmpty
	case agent.ReasonLimit:
		return exitLimit
	case agent.ReasonLoop:
		return exitLoop
	case agent.ReasonDenied:
		return exitDenied
	case agent.ReasonOverflow:
		return exitOverflow
	case agent.ReasonDeadline:
		return exitDeadline
	case agent.ReasonCanceled:
		return exitCancelled
	case agent.ReasonInterrupted:
		return exitUnavailable
	}
	if e.Fault != nil {
		return classCode(e.Fault.Class)
	}
	return exitUnavailable
}

// resumeWords say how to go on with a session.
func resumeWords(out result) string {
	if !out.kept {
		return ""
	}
	switch {
	case out.ended == nil, out.ended.Reason != agent.ReasonComplete:
		return "ninelives run --resume " + out.session
	}
	return fmt.Sprintf("ninelives run --resume %s \"…\"", out.session)
}

// modes are the permission modes by name.
func modes() []string {
	var names []string
	for _, m := range tool.Modes() {
		names = append(names, string(m))
	}
	return names
}
