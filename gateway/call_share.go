package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/visible"
)

// share carries out a call that others may join and that outlives its
// connection, or joins it.
func (k *call) share() {
	l, joined, err := k.s.live.begin(k.r.Context(), liveKey{k.client.Name, k.asks.Idempotency}, hashOf(k.r.URL.Path, k.body), false)
	if err != nil {
		k.forget()
		k.refuse(err)
		return
	}
	if joined {
		k.forget()
		k.stats.heal(healedJoined)
		k.stats.Outcome, k.stats.Status = outcomeOK, http.StatusOK
		k.stats.end(0, time.Now())
		k.s.told(k.r.Context(), &k.stats)
	} else {
		l.named(k.public)
		go func() {
			defer k.forget()
			out := l.sink()
			defer func() {
				if p := recover(); p != nil { // the other calls go on
					k.s.panicked(k.id, p)
					out.end(errBroken)
				}
			}()
			end := k.carry(l.context(), out)
			if end.err != nil {
				l.failed() // its key begins a new call
			}
			if end.broke && !k.codec.cleanFailure {
				out.end(errBroken)
				return
			}
			out.end(nil)
		}()
	}
	k.s.follow(k.w, k.r, func(out sink) error { return l.follow(k.r.Context(), out, k.r.Header) })
}

// hashOf tells requests apart: Gemini's name their model in the path.
func hashOf(path string, body []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(path))
	h.Write([]byte{0})
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

// panicked logs a mistake of ours that was caught.
func (s *Server) panicked(id string, p any) {
	s.options.Log.Error("a call has panicked: this is a mistake in the gateway", "request_id", id, "panic", visible.EscapedLine(fmt.Sprint(p)), "stack", string(debug.Stack()))
}

// errBroken ends an answer that broke after some of it was out.
var errBroken = errors.New("the answer broke off")

// detach takes a call on that is answered later.
func (k *call) detach() {
	b := background{Key: liveKey{k.client.Name, k.asks.Idempotency}, Hash: hashOf(k.r.URL.Path, k.body), ID: k.public, Model: k.head.Model, Body: k.body}
	if k.grew != nil {
		b.Previous = k.grew.Previous
	}
	l, object, err := k.s.responses.start(k.r.Context(), k.s.live, b, func(ctx context.Context, out sink) (*ninelives.Response, error) {
		defer k.forget()
		end := k.carry(ctx, out)
		return end.response, end.err
	}, func(err error) (code, message string) {
		a := k.answer(err)
		return cmp.Or(a.Error.Code, "server_error"), a.Error.Message
	})
	switch {
	case err != nil:
		k.forget()
		k.refuse(err)
	case k.head.Stream:
		k.s.follow(k.w, k.r, func(out sink) error { return l.follow(k.r.Context(), out, k.r.Header) })
	default:
		sendJSON(k.w, object)
	}
}
