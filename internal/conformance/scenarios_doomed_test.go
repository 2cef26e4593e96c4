package conformance_test

import (
	"sync"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
)

// An outage of a minute under steady traffic costs a handful of doomed calls
// and nobody's answer: two hundred calls, one every 300 ms, all answered by the
// fallback; and the traffic that goes on finds out soon that the primary is back.
func TestOutageCostsFewDoomedCalls(t *testing.T) {
	const (
		outage = time.Minute
		every  = outage / 200
		calls  = 300 // the last hundred come in the 30 s after the outage
		said   = "On my feet."
	)
	down, well := chaos.Step{For: outage, Error: chaos.Overloaded}, chaos.Step{Text: said}
	play(t, script{primary: []chaos.Step{down, well}, fallback: one(well)}, func(s *stage) {
		answers := make([]*ninelives.Response, calls)
		var all sync.WaitGroup
		for i := range calls {
			time.Sleep(time.Until(s.began.Add(time.Duration(i) * every)))
			all.Go(func() {
				resp, err := ninelives.Collect(s.model.Stream(s.Context(), ninelives.Prompt(prompt)))
				if err != nil {
					s.Errorf("call %d: %v", i, err)
					return
				}
				answers[i] = resp
			})
		}
		all.Wait()
		s.primary.Wait()

		for i, resp := range answers {
			switch {
			case resp == nil:
			case resp.Text() != said:
				s.Errorf("call %d: %q", i, resp.Text())
			case i < 190 && !resp.IsFallback: // it ends before the outage does
				s.Errorf("call %d was answered by the primary, which is down", i)
			}
		}
		equal(s, "the traffic is with the primary again", answers[calls-1] != nil && !answers[calls-1].IsFallback, true)

		doomed, back := 0, time.Duration(0)
		for _, e := range s.primary.Log() {
			switch at := e.At.Sub(s.began); {
			case e.Status != 200:
				doomed++
			case back == 0:
				back = at
			}
		}
		if doomed > 10 {
			s.Errorf("%d doomed calls", doomed)
		}
		between(s, "used again", back, outage, outage+30*time.Second)
	})
}
