package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json" // the SDK's types are made for it
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
	experiment "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxMessage is the longest message that is read: room for a prompt with
// several pictures.
const maxMessage = 64 << 20

// conn is a JSON-RPC 2.0 connection of one JSON object a line.
type conn struct {
	admit  admit
	failed context.CancelCauseFunc // told when nothing can be written any more

	writing sync.Mutex
	out     io.Writer
	broken  bool

	mu       sync.Mutex // guards what follows
	over     bool       // nothing is read any more
	next     int64
	waiting  map[int64]chan answer
	running  map[string]func() // cancels the request with this id
	handlers sync.WaitGroup
	hungUp   chan struct{}
}

// admit takes a message in the order of arrival, and must not wait for
// anything. What it gives is run beside the others; cancel, if not nil, is
// called when the editor wants no answer any more.
type admit func(method string, params []byte) (run handler, cancel func(), err error)

// handler answers a request; then, if not nil, runs once the answer was sent.
type handler func(ctx context.Context) (result any, then func(), err error)

// answer is what the editor answered.
type answer struct {
	result []byte
	err    error
}

func newConn(out io.Writer, a admit, failed context.CancelCauseFunc) *conn {
	return &conn{out: out, admit: a, failed: failed, waiting: map[int64]chan answer{}, running: map[string]func(){}, hungUp: make(chan struct{})}
}

// close ends the waiting for answers: none will come.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.hungUp)
	}
}

// read takes messages until the input ends, which is no error.
func (c *conn) read(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, cut, err := readLine(r)
		switch {
		case cut:
			c.reply(idOf(line), nil, sdk.NewInvalidRequest(explain("the message is longer than %d MB, which is the most that is read", maxMessage>>20)))
		case len(bytes.TrimSpace(line)) > 0:
			c.take(ctx, line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the editor's messages cannot be read: %w", err)
		}
	}
}

// readLine reads a line; cut: it was too long, and line is its beginning.
func readLine(r *bufio.Reader) (line []byte, cut bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if !cut {
			line = append(line, piece...)
		}
		if len(line) > maxMessage {
			line, cut = bytes.Clone(line[:64<<10]), true
		}
		if err != bufio.ErrBufferFull {
			return line, cut, err
		}
	}
}

// idOf looks for the id in the beginning of a message.
func idOf(head []byte) jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewReader(head), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return nil
		}
		isID := name.String() == "id"
		v, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if isID && isScalar(v) {
			return v.Clone()
		}
	}
}

func isScalar(id jsontext.Value) bool {
	return id.Kind() == '"' || id.Kind() == '0' || id.Kind() == 'n'
}

// envelope is any message.
type envelope struct {
	Version jsontext.Value `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  jsontext.Value `json:"method"`
	Params  jsontext.Value `json:"params"`
	Result  jsontext.Value `json:"result"`
	Error   jsontext.Value `json:"error"`
}

// take deals with one message.
func (c *conn) take(ctx context.Context, line []byte) {
	var m envelope
	text := jsontext.Value(line)
	lenient := jsontext.AllowInvalidUTF8(true) // scripts send halves of surrogate pairs
	switch {
	case !text.IsValid(lenient):
		c.reply(nil, nil, sdk.NewParseError(explain("the message is no JSON")))
		return
	case text.Kind() == '[':
		c.reply(nil, nil, sdk.NewInvalidRequest(explain("batches are not part of this protocol: send one message a line")))
		return
	case text.Kind() != '{':
		c.reply(nil, nil, sdk.NewInvalidRequest(explain("a message is a JSON object")))
		return
	}
	if err := experiment.Unmarshal(line, &m, lenient); err != nil {
		c.reply(nil, nil, sdk.NewInvalidRequest(explain("the message cannot be read: %v", err)))
		return
	}
	id := m.ID
	if id != nil && !isScalar(id) {
		c.reply(nil, nil, sdk.NewInvalidRequest(explain("an id is a string or a number")))
		return
	}
	if m.Method == nil && id != nil && (m.Result != nil || m.Error != nil) {
		c.answered(m)
		return
	}
	var method, version string
	if json.Unmarshal(m.Version, &version) != nil || version != "2.0" {
		c.reply(id, nil, sdk.NewInvalidRequest(explain(`"jsonrpc" must be "2.0"`)))
		return
	}
	if json.Unmarshal(m.Method, &method) != nil || method == "" {
		c.reply(id, nil, sdk.NewInvalidRequest(explain(`"method" must be the name of a method`)))
		return
	}
	if method == "$/cancel_request" {
		c.cancel(m.Params)
		return
	}
	if !c.enter() {
		return
	}
	run, cancel, err := c.admit(method, m.Params)
	if err != nil || run == nil {
		c.handlers.Done()
		if id != nil {
			c.reply(id, nil, err)
		}
		return
	}
	c.start(ctx, id, run, cancel)
}

// enter counts one more request that the end waits for; false once nothing is
// begun any more. What was admitted always runs.
func (c *conn) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.handlers.Add(1)
	}
	return !c.over
}

// start runs a request beside the others.
func (c *conn) start(ctx context.Context, id jsontext.Value, run handler, cancel func()) {
	ctx, stop := context.WithCancel(ctx)
	key := string(id)
	if cancel == nil {
		cancel = stop
	}
	c.mu.Lock()
	c.running[key] = cancel
	c.mu.Unlock()
	go func() {
		defer c.handlers.Done()
		defer stop()
		result, then, err := guarded(ctx, run)
		c.mu.Lock()
		delete(c.running, key)
		c.mu.Unlock()
		if id != nil {
			c.reply(id, result, err)
		}
		if then != nil && err == nil {
			then()
		}
	}()
}

// guarded runs a handler; its panic is the request's error and no more.
func guarded(ctx context.Context, run handler) (result any, then func(), err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &broke{value: r}
		}
	}()
	return run(ctx)
}

// broke is a mistake in the program.
type broke struct {
	value any
}

func (b *broke) Error() string {
	return "the program made a mistake (" + oneLine(fmt.Sprint(b.value)) + "); what was recorded is kept"
}

// cancel ends a request that the editor wants no answer to.
func (c *conn) cancel(params []byte) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	cancel := c.running[string(bytes.TrimSpace(p.ID))]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// answered hands an answer to who waits for it.
func (c *conn) answered(m envelope) {
	n, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	a := answer{result: m.Result.Clone()}
	if m.Error != nil && m.Error.Kind() != 'n' {
		var e sdk.RequestError
		if json.Unmarshal(m.Error, &e) != nil || e.Message == "" {
			e.Message = "the editor gave no reason"
		}
		a.err = errors.New(oneLine(e.Message))
	}
	c.mu.Lock()
	ch := c.waiting[n]
	delete(c.waiting, n)
	c.mu.Unlock()
	if ch != nil {
		ch <- a
	}
}

// call asks the editor and waits for its answer.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	ch := make(chan answer, 1)
	c.mu.Lock()
	c.next++
	n := c.next
	c.waiting[n] = ch
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, n)
		c.mu.Unlock()
	}()
	c.send(map[string]any{"jsonrpc": "2.0", "id": n, "method": method, "params": params})
	select {
	case a := <-ch:
		if a.err != nil {
			return a.err
		}
		return json.Unmarshal(a.result, result)
	case <-c.hungUp:
		return errOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// notify tells the editor something.
func (c *conn) notify(method string, params any) {
	c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// reply answers a request; a nil id is one that could not be read.
func (c *conn) reply(id jsontext.Value, result any, err error) {
	if id == nil {
		id = jsontext.Value("null")
	}
	m := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id)}
	if err != nil {
		m["error"] = requestError(err)
	} else {
		m["result"] = result
	}
	c.send(m)
}

// send writes a message. When that fails there is nobody to tell.
func (c *conn) send(m any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		c.failed(fmt.Errorf("a message to the editor cannot be written as JSON: %w", err))
		return
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.broken {
		return
	}
	if _, err := c.out.Write(b.Bytes()); err != nil {
		c.broken = true
		c.failed(fmt.Errorf("the editor takes no messages any more: %w", err))
	}
}

// explain is the data of an error that JSON-RPC has a fixed message for.
func explain(format string, args ...any) map[string]string {
	return map[string]string{"error": fmt.Sprintf(format, args...)}
}

// requestError is an error as JSON-RPC has it: one line in the message, which
// is what editors show.
func requestError(err error) *sdk.RequestError {
	var e *sdk.RequestError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, ErrNoSession):
		return &sdk.RequestError{Code: -32002, Message: oneLine(err.Error())}
	case errors.Is(err, context.Canceled):
		return sdk.NewRequestCancelled(nil)
	}
	return &sdk.RequestError{Code: -32603, Message: oneLine(err.Error())}
}

// invalid says what is wrong with the parameters of a request.
func invalid(format string, args ...any) error {
	return &sdk.RequestError{Code: -32602, Message: fmt.Sprintf(format, args...)}
}
