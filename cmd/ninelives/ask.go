package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/journal"
)

func (p *process) ask() *cobra.Command {
	a := &asking{process: p}
	cmd := &cobra.Command{
		Use:   "ask [question]",
		Short: "Ask a model, and get a whole answer",
		Long: `Ask a model, and get a whole answer.

The words are the question; standard input, if it is not a terminal, is the
context before it. The answer goes to stdout, what had to be healed to stderr.
Whom to ask follows from flags, the configuration, the keys in the environment
and the model servers on this machine; without any, a built-in simulator
answers. The question is on disk before anything is sent: see ninelives calls.

Exit codes: 0 complete, 1 internal, 2 usage, 3 key, 4 credit, 5 unavailable
(try --resume), 6 refused, 7 cut at the length limit, 8 empty, 12 too long,
124 deadline, 130 stopped.`,
		Example: `  ninelives ask "Why do cats land on their feet?"
  git diff | ninelives ask "Write a commit message for this."
  ninelives ask --model anthropic/claude-sonnet-4-6 --fallback openai/gpt-5.4 --deadline 30s "…"
  ninelives ask --resume ID`,
		RunE: func(cmd *cobra.Command, words []string) error {
			a.in.words = words
			return a.run(cmd.Context(), a.mistakes(cmd))
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.choice.model, "model", "", "model to ask first: provider/model, a provider, or a preset of the configuration")
	f.StringArrayVar(&a.choice.fallbacks, "fallback", nil, "model to ask next (repeatable)")
	f.StringVar(&a.choice.preset, "preset", "", "how to heal: default, interactive, background, catbuddy, codebuddy or hardened")
	f.Var(&a.choice.deadline, "deadline", "total time, such as 30s (default: the policy's)")
	f.StringVar(&a.choice.config, "config", "", "configuration file instead of ninelives.yaml and the user's own")
	f.StringVar(&a.in.system, "system", "", "instruction for the model")
	f.StringVar(&a.in.schema, "schema", "", "JSON schema file that the answer must satisfy")
	f.StringArrayVar(&a.in.images, "image", nil, "picture, as a file or an address (repeatable)")
	f.StringVar(&a.resume, "resume", "", "take up the call with this id")
	f.BoolVar(&a.json, "json", false, "write one JSON object a line")
	return cmd
}

// asking is one run of ask.
type asking struct {
	*process
	in     input
	choice choice
	resume string
	json   bool

	start time.Time
	kept  *kept
	id    string // in the journal; empty if it could not be kept
	tell  teller
}

// run asks, unless a flag holds a mistake: the question is kept all the same.
// Its errors have been told when it returns.
func (a *asking) run(ctx context.Context, mistake error) error {
	a.start = time.Now()
	if limit := a.choice.deadline.Duration; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	a.tell = a.teller()
	a.kept = a.openJournal("question")
	defer a.kept.close()

	call, err := a.call(ctx)
	if call == nil {
		return a.fail(cmp.Or(mistake, err))
	}
	mistake = errors.Join(mistake, err)
	// The question is kept even if its time is over or somebody stops it.
	if err := a.begin(context.WithoutCancel(ctx), call); err != nil {
		return a.fail(err)
	}
	if mistake = cmp.Or(mistake, ctx.Err()); mistake != nil {
		return a.end(nil, mistake)
	}
	chain, err := a.open(ctx, a.choice, demo)
	if err != nil {
		return a.end(nil, err)
	}
	defer chain.close()
	chain.warnings = append(chain.warnings, a.kept.warnings...)
	resp, err := a.carryOut(ctx, chain, call.Request)
	return a.end(resp, err)
}

// teller chooses how the call is told.
func (a *asking) teller() teller {
	if a.json {
		return &lines{out: a.stdout, start: a.start}
	}
	return &show{out: a.stdout, log: a.stderr, start: a.start,
		live:    isTerminal(a.stdout) && a.in.schema == "",
		sameTTY: isTerminal(a.stdout) && isTerminal(a.stderr),
		paint:   styleFor(a.stderr, a.env),
	}
}

// call makes what is recorded first: new, or that of an earlier call with what
// the flags replace. If only what goes with the question cannot be read, there
// is a call as well as an error: the question is to be kept.
func (a *asking) call(ctx context.Context) (*journal.Call, error) {
	if a.resume == "" {
		req, err := a.request(ctx, &a.in)
		if req == nil {
			return nil, err
		}
		return &journal.Call{Source: "ask", Request: req, Labels: a.labels()}, err
	}
	if len(a.in.words) > 0 {
		return nil, usagef("--resume takes up the question that was kept: leave the words out, or ask anew without --resume")
	}
	earlier, err := a.kept.find(ctx, a.resume)
	if err != nil {
		return nil, err
	}
	question, err := a.complete(ctx, earlier)
	if err != nil {
		return nil, err
	}
	if earlier.Raw == nil { // a client of the gateway names its routes
		a.choice.inherit(earlier.Labels)
	}
	req, err := a.replace(ctx, question, &a.in)
	labels := a.labels()
	labels[labelQuestion] = earlier.Labels[labelQuestion]
	return &journal.Call{Source: "ask", Request: req, Labels: labels, Resumes: earlier.ID}, err
}

// complete gives the question of an earlier call with what it was kept without.
func (a *asking) complete(ctx context.Context, earlier *journal.Record) (*ninelives.Request, error) {
	req := earlier.Request
	for lacks := range strings.SplitSeq(earlier.Labels[labelLacks], "\n") {
		switch {
		case lacks == lostImage && len(a.in.images) == 0, lacks == lostSchema && a.in.schema == "":
			return nil, usagef("--resume: the file of %s could not be read when this was asked: give it again with %s FILE", lacks, lacks)
		case lacks == lostStdin:
			text, err := a.readStdin(ctx)
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(text) == "" {
				return nil, usagef("--resume: standard input could not be read when this was asked: give it again, as in: ninelives ask --resume %s < FILE", earlier.ID)
			}
			req = prepend(req, text)
		}
	}
	return req, nil
}

// begin makes the question durable. A journal that cannot be written is a
// warning and no reason to leave the question unanswered; that a call is being
// taken up elsewhere is one.
func (a *asking) begin(ctx context.Context, c *journal.Call) error {
	id, err := a.kept.begin(ctx, c)
	switch {
	case errors.Is(err, journal.ErrRunning), errors.Is(err, journal.ErrResumed), errors.Is(err, journal.ErrComplete):
		return usagef("--resume: %v", err)
	case err != nil:
		return err
	}
	a.id = id
	return nil
}

// carryOut makes the call and tells it.
func (a *asking) carryOut(ctx context.Context, chain *chain, req *ninelives.Request) (*ninelives.Response, error) {
	if err := a.tell.begin(a.id, chain); err != nil {
		return nil, readerGone(err)
	}
	var opts []heal.Option
	if s, ok := a.tell.(*show); ok && !s.live {
		opts = append(opts, heal.Rescue(heal.ModeHold))
	}
	for ev, err := range chain.healed(a.choice.deadline.Duration, opts...).Stream(ctx, req) {
		if err != nil {
			return nil, err
		}
		switch ev := ev.(type) {
		case ninelives.Done:
			return ev.Response, nil
		case ninelives.Notice:
			a.kept.note(ctx, a.id, ev)
		}
		if err := a.tell.event(ev); err != nil {
			return nil, readerGone(err)
		}
	}
	return nil, ninelives.ErrNoEnd
}

// errReaderGone is the end of a call whose reader does not read on.
var errReaderGone = fmt.Errorf("the reader of the answer has gone: %w", context.Canceled)

// errUnwritten is an output that cannot be written, as on a full disk.
var errUnwritten = errors.New("cannot write the answer")

// readerGone makes the error of a call whose reader does not read on. A full
// disk behind stdout is told as such.
func readerGone(err error) error {
	if !brokenPipe(err) {
		return fmt.Errorf("%w: %w", errUnwritten, err)
	}
	return &ninelives.Fault{Class: ninelives.ClassCanceled, Message: "the reader of the answer has gone", Err: errReaderGone}
}

// end records and tells the end of a call, in this order: an answer that is
// paid for is kept even if nobody reads it.
func (a *asking) end(resp *ninelives.Response, err error) error {
	unkept := a.kept.end(a.id, journal.OutcomeOf(resp, err))
	if unkept != nil {
		a.id = ""
	}
	if err != nil {
		return a.fail(errors.Join(err, unkept))
	}
	if werr := a.tell.answer(resp); werr != nil && !brokenPipe(werr) {
		if a.id == "" {
			return fmt.Errorf("%w: %w", errUnwritten, werr)
		}
		return fmt.Errorf("%w (it is kept: ninelives calls %s): %w", errUnwritten, a.id, werr)
	}
	if code := answerCode(resp); code != exitOK {
		return &ended{code}
	}
	return nil
}

// fail tells the failure; a reader that has gone hears nothing.
func (a *asking) fail(err error) error {
	code := exitCode(err)
	if a.choice.deadline.Duration > 0 && err != nil && errors.Is(err, context.DeadlineExceeded) {
		err = a.tooLate(err)
	}
	switch werr := a.tell.failure(a.id, err, code); {
	case werr == nil || brokenPipe(werr):
	case errors.Is(err, errUnwritten):
		return err
	default:
		return fmt.Errorf("%s – and this could not be told: %w", describe(err), werr)
	}
	return &ended{code}
}

// tooLate says of a deadline that has passed before anybody was asked what can
// be done; the story of an attempt says it itself.
func (a *asking) tooLate(err error) error {
	var story *heal.Exhausted
	var fault *ninelives.Fault
	if errors.As(err, &story) && len(story.Trail) > 0 || errors.As(err, &fault) && !errors.As(err, &story) {
		return err
	}
	return fmt.Errorf("the deadline of %s passed before a model could be asked: allow more time with --deadline", a.choice.deadline.Duration)
}

// The labels of a call: whom it was for, and what its record lacks.
const (
	labelQuestion  = "question"
	labelModel     = "model"
	labelFallbacks = "fallbacks"
	labelPreset    = "preset"
	labelLacks     = "lacks" // input.lost
)

func (a *asking) labels() map[string]string {
	question := oneLine(strings.Join(a.in.words, " "))
	if chars := []rune(question); len(chars) > 120 {
		question = string(chars[:119]) + "…"
	}
	labels := map[string]string{}
	for name, value := range map[string]string{labelQuestion: question, labelModel: a.choice.model,
		labelFallbacks: strings.Join(a.choice.fallbacks, "\n"), labelPreset: a.choice.preset, labelLacks: strings.Join(a.in.lost, "\n")} {
		if value != "" {
			labels[name] = value
		}
	}
	return labels
}

// inherit takes over what the flags leave open.
func (c *choice) inherit(labels map[string]string) {
	if c.model == "" {
		c.model = labels[labelModel]
		if len(c.fallbacks) == 0 && labels[labelFallbacks] != "" {
			c.fallbacks = strings.Split(labels[labelFallbacks], "\n")
		}
	}
	if c.preset == "" {
		c.preset = labels[labelPreset]
	}
}
