package gateway

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestRunningCallsFinishAndNewOnesAreTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDrain()
		leave, ok := d.enter()
		if !ok || d.inFlight() != 1 || d.draining() {
			t.Fatal("a call cannot enter")
		}
		d.start()
		d.start()
		if _, ok := d.enter(); ok {
			t.Error("a call enters while the gateway stops")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if left := d.wait(ctx); left != 1 || time.Since(began) != 10*time.Second {
			t.Errorf("%d are left after %v", left, time.Since(began))
		}
		go func() {
			time.Sleep(3 * time.Second)
			leave()
			leave() // leaving twice is leaving once
		}()
		began = time.Now()
		if left := d.wait(t.Context()); left != 0 || time.Since(began) != 3*time.Second {
			t.Errorf("%d are left after %v", left, time.Since(began))
		}
	})
}

func TestReadyAndAlive(t *testing.T) {
	d := newDrain()
	missing := ""
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		if path == "/healthz" {
			healthz("1.2.3")(w, r)
		} else {
			readyz(d, func() string { return missing })(w, r)
		}
		return w.Code, w.Body.String()
	}
	want := func(path string, code int, body string) {
		t.Helper()
		if gotCode, got := get(path); gotCode != code || got != body+"\n" {
			t.Errorf("%s: %d %s, want %d %s", path, gotCode, got, code, body)
		}
	}
	want("/readyz", 200, `{"service":"ninelives","status":"ready"}`)
	missing = "the journal\x1b cannot be written"
	want("/readyz", 503, `{"service":"ninelives","status":"not_ready","why":"the journal\\x1b cannot be written"}`)
	d.start()
	want("/readyz", 503, `{"service":"ninelives","status":"stopping"}`)
	want("/healthz", 200, `{"service":"ninelives","status":"alive","version":"1.2.3"}`)
}
