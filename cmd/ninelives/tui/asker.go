package tui

import (
	"context"
	"sync"

	"github.com/ninelives-ai/ninelives/agent"
)

// Asker brings the questions of an agent before the person at the terminal. It
// is made before the agent, which is given its methods (agent.Approve and
// agent.GrantMore), and handed to [Run]. Without a terminal that runs, the
// answer is no. It is safe for concurrent use.
type Asker struct {
	mu   sync.Mutex
	last int
	open map[int]chan answer
	tell func(msg any) // nil while no terminal runs
}

// NewAsker makes an Asker.
func NewAsker() *Asker { return &Asker{open: map[int]chan answer{}} }

// Approve asks for a call. It waits as long as the person does, and gives a no
// when the context ends.
func (a *Asker) Approve(ctx context.Context, q agent.Question) agent.Decision {
	return a.ask(ctx, dialog{question: &q}).decision
}

// GrantMore asks whether a turn that the guard is about to stop gets another
// full quota.
func (a *Asker) GrantMore(ctx context.Context, e agent.Ended) bool {
	return a.ask(ctx, dialog{grant: &e}).granted
}

func (a *Asker) ask(ctx context.Context, d dialog) answer {
	a.mu.Lock()
	tell := a.tell
	a.last++
	d.id = a.last
	reply := make(chan answer, 1)
	a.open[d.id] = reply
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.open, d.id)
		a.mu.Unlock()
	}()
	no := answer{decision: agent.Decision{Reply: agent.ReplyNo}}
	if tell == nil {
		return no
	}
	tell(asked{d})
	select {
	case r := <-reply:
		return r
	case <-ctx.Done():
		tell(withdrawn{d.id})
		return no
	}
}

// answer hands a person's word over.
func (a *Asker) answer(r answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if reply := a.open[r.id]; reply != nil {
		delete(a.open, r.id)
		reply <- r
	}
}

// attach says where questions go; nil answers all of them with no.
func (a *Asker) attach(tell func(any)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell = tell
	if tell != nil {
		return
	}
	for id, reply := range a.open {
		delete(a.open, id)
		reply <- answer{decision: agent.Decision{Reply: agent.ReplyNo}}
	}
}
