package gateway

import (
	"context"
	"errors"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// ending is how a call ended.
type ending struct {
	// response is the answer, whole or with its flag; nil if there is none.
	response *ninelives.Response
	// attempt is the number of the one that answered; 0 if none did.
	attempt int
	err     error
	// gone: the client has left before the end.
	gone bool
	// status is what the client was told; 200 once a stream has begun.
	status int
	// broke: bytes were out when it failed.
	broke bool
	// raw is the answer in one piece, in the provider's own bytes.
	raw []byte
	// first is when the first byte of content went out; zero if none did.
	first time.Time
}

// run carries out a call whose answer is streamed.
func (s *stream) run(ctx context.Context, model ninelives.Model, req *ninelives.Request, notice func(ninelives.Notice)) ending {
	s.start()
	defer s.stop()
	var end ending
	for ev, err := range model.Stream(ctx, req) {
		if err != nil {
			end.err = err
			break
		}
		switch e := ev.(type) {
		case ninelives.Notice:
			notice(e)
		case ninelives.Done:
			end.response, end.attempt = e.Response, e.Attempt
		case *ninelives.Frame:
		default:
			if end.first.IsZero() {
				end.first = time.Now()
			}
		}
		if s.event(ev) != nil {
			end.gone = true
			return end
		}
	}
	if ctx.Err() != nil && errors.Is(end.err, context.Canceled) {
		end.gone = true
		return end
	}
	if resp, _ := flagged(end.err); resp != nil && !(hollow(resp) && s.foreign != nil && s.foreign(resp.Candidate)) {
		end.response, end.err = resp, nil
		if s.finish(resp) != nil {
			end.gone = true
		}
	}
	end.status = 200
	end.broke = end.err != nil && s.started()
	return end
}

// started says that the client has its status.
func (s *stream) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// runWhole carries out a call whose answer is sent in one piece.
func runWhole(ctx context.Context, model ninelives.Model, req *ninelives.Request, notice func(ninelives.Notice)) ending {
	var end ending
	raw := map[int][]byte{}
	last := 0
	for ev, err := range model.Stream(ctx, req) {
		switch e := ev.(type) {
		case ninelives.Notice:
			if e.Kind == ninelives.NoticeAttempt {
				last = e.Attempt // an answer that is translated has no frames
			}
			notice(e)
		case *ninelives.Frame:
			last = e.Attempt
			raw[e.Attempt] = append(raw[e.Attempt], e.Data...)
		case ninelives.Discard:
			delete(raw, e.Attempt)
		case ninelives.Done:
			end.response, end.attempt = e.Response, e.Attempt
			if r := e.Response; r.Continued == 0 && r.Degraded == "" && !r.OutputDefaulted {
				end.raw = raw[e.Attempt]
			}
		default:
			if err == nil && end.first.IsZero() {
				end.first = time.Now()
			}
		}
		if err != nil {
			end.err = err
		}
	}
	if ctx.Err() != nil && errors.Is(end.err, context.Canceled) {
		end.gone = true
	} else if resp, whole := flagged(end.err); resp != nil && !(hollow(resp) && len(raw[last]) == 0) {
		end.response, end.err = resp, nil
		if whole {
			end.raw = raw[last]
		}
	}
	return end
}

// hollow says that an answer was filtered before anything was said. The protocol
// of who filtered it has its own way to say so, with the reason; in another one it
// would be an empty answer without any, so that an error says it there.
func hollow(r *ninelives.Response) bool {
	return r.Finish == ninelives.FinishContentFilter && r.Text() == "" && r.Message.Refusal() == "" && len(r.Message.ToolCalls()) == 0
}

// flagged is the answer that a failed call comes to where the provider ended it
// by a reason that every client knows: cut at its limit, filtered. It is passed
// on with that reason, but no call that is not whole is in it: whole says that
// nothing had to be left out.
func flagged(err error) (resp *ninelives.Response, whole bool) {
	var f *ninelives.Fault
	if !errors.As(err, &f) {
		return nil, false
	}
	var e *heal.Exhausted
	if errors.As(err, &e) && !e.Deadline {
		for _, t := range e.Trail { // a refusal is an answer, if nobody else has given one
			if t.Class == ninelives.ClassRefusal && t.Fault != nil && t.Fault.Partial != nil {
				f = t.Fault
			}
		}
	}
	if f.Partial == nil {
		return nil, false
	}
	made := *f.Partial
	resp, whole = &made, true
	switch {
	case f.Class == ninelives.ClassTruncated:
		resp.Finish = ninelives.FinishLength
	case f.Class == ninelives.ClassContentFilter && resp.Finish == ninelives.FinishContentFilter:
	case f.Class == ninelives.ClassRefusal && f.Phase == ninelives.PhaseAnswer:
		resp.Finish = ninelives.FinishRefusal
	default:
		return nil, false
	}
	resp.Candidate = f.Candidate
	resp.Message.Parts = nil
	for _, p := range f.Partial.Message.Parts {
		if c, ok := p.(ninelives.ToolCall); ok && (c.Name == "" || !rawjson.Valid([]byte(c.Arguments))) {
			whole = false
			continue
		}
		resp.Message.Parts = append(resp.Message.Parts, p)
	}
	return resp, whole
}
