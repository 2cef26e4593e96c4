package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	chunks = 200
	// words is how many a whole answer has, be it sent whole or in pieces.
	words = 40
	// pace is the time between two chunks of a stream that takes its time.
	pace = 20 * time.Millisecond
)

// The names of models tell the upstream how to write a stream.
const (
	modelShort = "short" // as each, but only words long, as the whole answers are
	modelEach  = "each"  // a write for each chunk, without a pause
	modelBurst = "burst" // all chunks in one write
	modelPaced = "paced" // a write for each chunk, pace apart
)

// serve is a process that answers on args[0]: the upstream, or without a
// handler the floor, a relay to args[1].
func serve(args []string, h http.Handler) error {
	if h == nil {
		target, err := url.Parse(args[1])
		if err != nil {
			return err
		}
		h = relay(target)
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	return (&http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}).Serve(l)
}

// relay is what a gateway could cost at the least in Go: bytes in, bytes out,
// each read passed on at once. The body is read first: the proxy alone breaks
// fast streams, for it may read a request's body once more after the answer has
// begun.
func relay(target *url.URL) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.Transport = &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512, DisableCompression: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, max(r.ContentLength, 0))
		if _, err := io.ReadFull(r.Body, body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}

// mock is the upstream: it answers at once, in the two protocols.
func mock() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", answering(chatWhole(), chatChunks))
	mux.Handle("POST /v1/messages", answering(messagesWhole(), messagesChunks))
	return mux
}

func answering(whole []byte, pieces func(words int) [][]byte) http.HandlerFunc {
	long, short := pieces(chunks-2), pieces(words)
	all := bytes.Join(long, nil)
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
			_, _ = w.Write(whole)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if bytes.Contains(body, []byte(`"`+modelBurst+`"`)) {
			_, _ = w.Write(all)
			return
		}
		wait := func() {}
		if bytes.Contains(body, []byte(`"`+modelPaced+`"`)) {
			wait = func() { sleep(r.Context(), pace) }
		}
		stream := long
		if bytes.Contains(body, []byte(`"`+modelShort+`"`)) {
			stream = short
		}
		for _, chunk := range stream {
			if _, err := w.Write(chunk); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			wait()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func word(i int) string { return fmt.Sprintf(" word%03d", i) }

func text() string {
	var b strings.Builder
	for i := range words {
		b.WriteString(word(i))
	}
	return b.String()
}

func chatWhole() []byte {
	return fmt.Appendf(nil, `{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"big","choices":[{"index":0,"message":{"role":"assistant","content":%q,"refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":80,"total_tokens":280},"system_fingerprint":"fp_1"}`, text())
}

func chatChunks(words int) [][]byte {
	const head = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"big","system_fingerprint":"fp_1",`
	list := [][]byte{[]byte(head + `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n")}
	for i := range words {
		list = append(list, fmt.Appendf(nil, "%s\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"logprobs\":null,\"finish_reason\":null}]}\n\n", head, word(i)))
	}
	return append(list,
		[]byte(head+`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`+"\n\n"),
		[]byte("data: [DONE]\n\n"))
}

func messagesWhole() []byte {
	return fmt.Appendf(nil, `{"id":"msg_1","type":"message","role":"assistant","model":"big","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":200,"output_tokens":80}}`, text())
}

func messagesChunks(words int) [][]byte {
	event := func(name, data string) []byte { return []byte("event: " + name + "\ndata: " + data + "\n\n") }
	list := [][]byte{
		event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"big","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":200,"output_tokens":1}}}`),
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
	}
	for i := range words {
		list = append(list, event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, word(i))))
	}
	return append(list,
		event("content_block_stop", `{"type":"content_block_stop","index":0}`),
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":198}}`),
		event("message_stop", `{"type":"message_stop"}`))
}
