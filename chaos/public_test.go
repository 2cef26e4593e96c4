package chaos

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The sixteen public faults, as their catalogue words them: what the first and
// the second request get, and after how long.
func TestPublicScenarios(t *testing.T) {
	const words = 59 * pace // 60 tokens, the first at once
	type got struct {
		status int
		tokens int
		err    error
		after  time.Duration
	}
	whole := got{200, 60, nil, words}
	for name, want := range map[string][2]got{
		"fb-s01": {{429, 0, nil, 0}, whole},
		"fb-s02": {{429, 0, nil, 0}, {429, 0, nil, 0}},
		"fb-s03": {{500, 0, nil, 0}, whole},
		"fb-s04": {{503, 0, nil, 0}, {503, 0, nil, 0}},
		"fb-s05": {{0, 0, syscall.ECONNRESET, 0}, whole},
		"fb-s06": {{0, 0, io.EOF, 120 * time.Second}, {0, 0, io.EOF, 120 * time.Second}},
		"fb-s07": {{200, 60, nil, 20*time.Second + words}, {200, 60, nil, 20*time.Second + words}},
		"fb-s08": {{200, 40, io.ErrUnexpectedEOF, 39 * pace}, {200, 40, io.ErrUnexpectedEOF, 39 * pace}},
		"fb-s09": {{200, 20, io.ErrUnexpectedEOF, 30*time.Second + 19*pace}, {200, 20, io.ErrUnexpectedEOF, 30*time.Second + 19*pace}},
		"fb-s10": {whole, whole},
		"fb-s11": {whole, whole},
		"fb-s12": {{400, 0, nil, 0}, {400, 0, nil, 0}},
		"fb-s13": {{400, 0, nil, 0}, {400, 0, nil, 0}},
		"fb-s14": {{200, 40, io.ErrUnexpectedEOF, 39 * pace}, {200, 40, io.ErrUnexpectedEOF, 39 * pace}},
		"fb-s15": {{503, 0, nil, 0}, {503, 0, nil, 0}},
		"fb-s16": {{503, 0, nil, 0}, {503, 0, nil, 0}},
	} {
		inBubble(t, nil, func(t *testing.T, srv *Server) {
			for i, want := range want {
				start := time.Now()
				resp, _, err := srv.say(t, chat, name, true)
				if resp == nil {
					resp = &http.Response{}
				}
				srv.Wait()
				log := srv.Log()
				if e := log[len(log)-1]; resp.StatusCode != want.status || e.Sent != want.tokens || !errors.Is(err, want.err) || time.Since(start) != want.after {
					t.Errorf("%s, request %d: %d, %d tokens, %v after %s; want %+v", name, i+1, resp.StatusCode, e.Sent, err, time.Since(start), want)
				}
			}
			if name == "fb-s15" {
				time.Sleep(time.Minute)
				if resp, got, err := srv.say(t, chat, name, true); err != nil || resp.StatusCode != 200 || !strings.Contains(got, "[DONE]") {
					t.Errorf("after its outage: %v %v", resp, err)
				}
			}
		})
	}
}
