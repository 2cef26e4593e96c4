package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/ninelives-ai/ninelives/chaos"
)

// dam stands before the simulator and holds an answer back from a word on,
// until the test has seen what it wants to see of an unfinished one. How long
// that takes is for the machine to say.
type dam struct {
	url string
	sim *chaos.Server

	mu   sync.Mutex
	word string        // nothing is held back while it is empty
	open chan struct{} // closed when what is held back may flow
}

func newDam(t *testing.T, sim *chaos.Server) *dam {
	d := &dam{sim: sim}
	srv := httptest.NewServer(d)
	d.url = srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return d
}

// hold holds back what is written from a word on, in this answer and in those
// that follow; release lets it all flow.
func (d *dam) hold(word string) (release func()) {
	open := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.word, d.open = word, open
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.open == open {
			d.word = ""
		}
		close(open)
	})
}

func (d *dam) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.sim.ServeHTTP(&dammed{w, d, r}, r)
}

// dammed is an answer behind a dam.
type dammed struct {
	http.ResponseWriter
	dam     *dam
	request *http.Request
}

func (d *dammed) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *dammed) Write(p []byte) (int, error) {
	d.dam.mu.Lock()
	word, open := d.dam.word, d.dam.open
	d.dam.mu.Unlock()
	if word != "" && bytes.Contains(p, []byte(word)) {
		select {
		case <-open:
		case <-d.request.Context().Done():
		}
	}
	return d.ResponseWriter.Write(p)
}
