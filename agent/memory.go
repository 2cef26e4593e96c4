package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// MemoryDirs are the directories that hold a MEMORY.md; an empty one is not used.
type MemoryDirs struct {
	// Project is .ninelives in the workspace.
	Project string
	// User is ninelives in XDG_DATA_HOME.
	User string
}

// MemoryDirsOf are the directories of a workspace and of a user with that home
// directory: where [Instructions] reads MEMORY.md from.
func MemoryDirsOf(dir, home string) MemoryDirs {
	return MemoryDirs{Project: filepath.Join(dir, ".ninelives"), User: userDir("XDG_DATA_HOME", home, filepath.Join(".local", "share"))}
}

// Memory remembers what is worth it beyond a session, in the MEMORY.md of the
// project and of the user. It does two things, both in the background: it
// archives history that nobody works on, as a few dated entries, and it refines
// what has come together. What it does ends as soon as a turn begins, and goes on
// when no turn runs; nothing waits for it. It is safe for concurrent use.
//
//	OnIdle ──► due list ──► summary ──► MEMORY.md ──► Archive entry
//	               ▲           │ no model could say
//	               │           ▼
//	            OnTurn     archive file, at most 16k characters ──► Archive entry
//
// Source: design 000 §3.5 (persistent retries for what nobody waits for).
type Memory struct {
	model    func() ninelives.Model
	settings MemorySettings
	project  *memoryDir
	user     *memoryDir

	mu      sync.Mutex
	waiting map[string]History
	turns   int
	quiet   time.Time          // when the last turn ended
	refine  time.Time          // when what there is is looked through again
	cancel  context.CancelFunc // of what is being done
	doing   string             // the session whose history it is
	taken   bool               // that history is part of a turn again
	problem string
	closed  bool
	wake    chan struct{}
	done    chan struct{} // nil: not started
}

// NewMemory makes the memory of an agent. model gives the model that the agent
// has at the time of the question.
func NewMemory(model func() ninelives.Model, dirs MemoryDirs, settings MemorySettings) *Memory {
	if settings.MaxBytes <= 0 {
		settings.MaxBytes = DefaultSettings().Memory.MaxBytes
	}
	settings.Every = max(settings.Every, time.Minute) // never without a pause
	m := &Memory{model: model, settings: settings, waiting: map[string]History{}, wake: make(chan struct{}, 1), quiet: time.Now()}
	if !settings.Off {
		m.project = newMemoryDir(dirs.Project, false)
		m.user = newMemoryDir(dirs.User, true)
	}
	m.refine = m.quiet.Add(settings.Idle)
	return m
}

// History is a piece of a session's history that is to be remembered.
type History struct {
	Session string
	// Messages are [State.Messages]; those from From up to and including Through
	// have not been archived yet.
	Messages      []ninelives.Message
	From, Through int
	// Since is when the session became idle; it is archived [MemorySettings.Idle]
	// later. Zero: at once, when no turn runs (compaction has dropped it).
	Since time.Time
	// Record makes it durable that a part has been archived. It is called for one
	// part after the other, from a goroutine of the memory, perhaps just as a turn
	// begins, and not after Close. An error ends the work on this history.
	Record func(Archive) error
}

// OnIdle hands over history that nobody works on. A later piece of the same
// session takes the place of one that still waits.
func (m *Memory) OnIdle(h History) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.off() || h.From > h.Through || h.Through >= len(h.Messages) {
		return
	}
	m.waiting[h.Session] = h
	m.start()
}

// OnTurn says that a turn begins: what the memory is doing ends at once, and
// nothing begins before every turn has ended. The session is taken off the list.
// It does not wait.
func (m *Memory) OnTurn(session string) (ended func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns++
	delete(m.waiting, session)
	if m.cancel != nil {
		m.taken = m.taken || m.doing == session
		m.cancel()
	}
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.turns--
		m.quiet = time.Now()
		if !m.closed && !m.off() {
			m.start()
		}
	})
}

// Problem says in a line what the memory last failed at; empty for nothing.
func (m *Memory) Problem() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problem
}

// Close ends all work at once and waits until it has ended. What waited is
// archived another time: it is still in the journal.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	if m.cancel != nil {
		m.cancel()
	}
	done := m.done
	m.poke()
	m.mu.Unlock()
	if done != nil {
		<-done
	}
	return nil
}

func (m *Memory) off() bool { return m.project == nil && m.user == nil }

// start lets the work go on, and begins it the first time.
func (m *Memory) start() {
	if m.done == nil {
		m.done = make(chan struct{})
		go m.run(m.done)
	}
	m.poke()
}

func (m *Memory) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run does what is due, one thing at a time, until the memory is closed.
func (m *Memory) run(done chan struct{}) {
	defer close(done)
	for {
		work, wait := m.next()
		if work != nil {
			work()
			continue
		}
		if wait == 0 {
			return
		}
		var due <-chan time.Time
		var timer *time.Timer
		if wait > 0 {
			timer = time.NewTimer(wait)
			due = timer.C
		}
		select {
		case <-due:
		case <-m.wake:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// next gives what is due now, or how long to wait for it: zero says that there
// is nothing any more, a negative time that somebody will say so.
func (m *Memory) next() (work func(), wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, 0
	}
	if m.turns > 0 {
		return nil, -1
	}
	var first *History
	var at time.Time
	for _, h := range m.waiting {
		due := h.Since
		if !due.IsZero() {
			due = due.Add(m.settings.Idle)
		}
		if first == nil || due.Before(at) || due.Equal(at) && h.Session < first.Session {
			first, at = &h, due
		}
	}
	now := time.Now()
	if first != nil && !at.After(now) {
		h := *first
		delete(m.waiting, h.Session)
		return m.begin(h.Session, func(ctx context.Context) {
			if !m.archive(ctx, &h) && ctx.Err() != nil {
				m.mu.Lock()
				defer m.mu.Unlock()
				if _, newer := m.waiting[h.Session]; !newer && !m.taken {
					m.waiting[h.Session] = h
				}
			}
		}), 0
	}
	dream := m.refine
	if quiet := m.quiet.Add(m.settings.Idle); dream.Before(quiet) {
		dream = quiet
	}
	if !dream.After(now) {
		return m.begin("", m.dream), 0
	}
	if first == nil || dream.Before(at) {
		at = dream
	}
	return nil, at.Sub(now)
}

// begin prepares work that a turn ends.
func (m *Memory) begin(session string, do func(ctx context.Context)) func() {
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.doing, m.taken = cancel, session, false
	return func() {
		do(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		cancel()
		m.cancel = nil
	}
}

func (m *Memory) fail(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problem = plainLine(fmt.Sprintf(format, args...))
}

// ask asks the agent's present model, as work that nobody waits for.
func (m *Memory) ask(ctx context.Context, model ninelives.Model, instruction, text string) (string, error) {
	resp, err := ninelives.Generate(ctx, model, &ninelives.Request{Background: true,
		Messages: []ninelives.Message{ninelives.SystemText(instruction), ninelives.UserText(text)}})
	switch {
	case err != nil:
		return "", err
	case resp.Finish == ninelives.FinishLength:
		return "", fmt.Errorf("the model's answer was cut off")
	}
	return resp.Text(), nil
}
