package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ninelives-ai/ninelives/tool"
)

// remote is a tool of a server.
type remote struct {
	server *server
	name   string // the server's own
	spec   tool.Spec
}

func (r *remote) Spec() tool.Spec { return r.spec }

func (r *remote) Needs([]byte) ([]tool.Need, error) {
	return []tool.Need{{Kind: tool.NeedCall, Target: r.server.cfg.Name + "/" + oneLine(r.name, 200)}}, nil
}

// Run calls the tool. A call that a broken connection cut off is made once
// again if it never reached the server, or only reads.
func (r *remote) Run(ctx context.Context, call *tool.Call) tool.Result {
	what := r.server.cfg.Name + "/" + oneLine(r.name, 80)
	arguments := json.RawMessage(call.Arguments)
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	unsaid, again := 0, 0 // made anew because it never arrived, or because it only reads
	for {
		l, err := r.server.acquire(ctx)
		if err != nil {
			return tool.ErrorResult(err.Error() + "; " + what + " was not called")
		}
		o := r.ask(ctx, l, arguments)
		r.server.release(l)
		why := ""
		if o.err != nil {
			why = r.server.cfg.harmless(o.err)
		}
		switch {
		case o.kind == answered:
			return resultOf(what, o.result)
		case o.kind == turnedDown:
			return tool.ErrorResult(what + ": " + why)
		case o.kind == ended:
			res := tool.ErrorResult(fmt.Sprintf("the call of %s was ended before it had answered (%s); the server was told to stop", what, why))
			return r.unknown(res)
		case o.kind == unsent && unsaid < 2:
			unsaid++
			continue
		case o.kind == broken && r.spec.ReadOnly && again < 1:
			again++
			continue
		case o.kind == unsent:
			return tool.ErrorResult(fmt.Sprintf("%s could not be called: %s", what, why))
		}
		return r.unknown(tool.ErrorResult(fmt.Sprintf("the connection broke while %s was called (%s)", what, why)))
	}
}

// unknown marks a result whose call may have had its effect.
func (r *remote) unknown(res tool.Result) tool.Result {
	if r.spec.ReadOnly {
		return res
	}
	text := res.Text() + ". It may or may not have taken effect: check before you call it again."
	res = tool.TextResult(text)
	res.IsError, res.Unknown = true, true
	return res
}

// outcome is how a call ended.
type outcome struct {
	kind   kind
	result *sdk.CallToolResult
	err    error
}

type kind int

const (
	answered   kind = iota // with a result
	turnedDown             // the server answered with an error
	ended                  // the caller's context ended it
	unsent                 // it never reached the server
	broken                 // nobody knows
)

// ask makes the call on a connection. One that the context ends does not wait
// for a server that no longer reads.
func (r *remote) ask(parent context.Context, l *link, arguments json.RawMessage) outcome {
	select {
	case <-l.dead:
		return outcome{kind: unsent, err: l.why}
	default:
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	type reply struct {
		result *sdk.CallToolResult
		err    error
	}
	done := make(chan reply, 1)
	go func() {
		result, err := l.session.CallTool(ctx, &sdk.CallToolParams{Name: r.name, Arguments: arguments})
		done <- reply{result, err}
	}()
	var got reply
	select {
	case got = <-done:
	case <-parent.Done():
		t := time.NewTimer(r.server.timing.letGo)
		defer t.Stop()
		select {
		case got = <-done:
		case <-t.C:
			// It is stuck in a write: the server does not read.
			go l.end(errors.New("it stopped reading"))
			return outcome{kind: ended, err: context.Cause(parent)}
		}
	}
	return r.judge(parent, l, got.result, got.err)
}

// Codes of the SDK for what the server has not answered: the connection is
// closing, or the transport has turned the request away.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// judge tells what came of a call.
func (r *remote) judge(parent context.Context, l *link, result *sdk.CallToolResult, err error) outcome {
	var wire *jsonrpc.Error
	var refused permanent
	switch {
	case err == nil && result != nil:
		return outcome{kind: answered, result: result}
	case err == nil:
		return outcome{kind: broken, err: errors.New("it answered with nothing")}
	case parent.Err() != nil:
		return outcome{kind: ended, err: context.Cause(parent)}
	case errors.As(err, &refused):
		return outcome{kind: turnedDown, err: err}
	case neverSent(err):
		go l.end(err)
		<-l.dead
		return outcome{kind: unsent, err: err}
	case errors.As(err, &wire) && wire.Code != codeClientClosing && wire.Code != codeServerClosing && wire.Code != codeRejected:
		return outcome{kind: turnedDown, err: wire}
	}
	if r.server.cfg.URL != "" && !errors.Is(err, sdk.ErrConnectionClosed) {
		// One request failed; whether the connection is good the next one tells.
		r.server.outdate(l)
		return outcome{kind: broken, err: err}
	}
	// Either the connection is gone, which a question finds out, and then its
	// end gives the reason; or this one answer could not be read.
	ctx, cancel := context.WithTimeout(parent, r.server.timing.letGo)
	defer cancel()
	if l.session.Ping(ctx, nil) != nil {
		go l.end(r.server.explain(err))
		<-l.dead
		err = l.why
	}
	return outcome{kind: broken, err: err}
}
