package heal

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestPrimaryThatIsRateLimitedIsRetriedAndThenTheFallbackAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t0 := time.Now()
		a := model("a", fails(ninelives.ClassRateLimit))
		b := model("b", says("hello"))
		s := watch(t.Context(), healed(a, Fallback(b)), ninelives.Prompt("hi"))
		if s.err != nil {
			t.Fatal(s.err)
		}
		equal(t, "asked a", a.since(t0), []time.Duration{0, 250 * time.Millisecond, 750 * time.Millisecond})
		equal(t, "asked b", b.since(t0), []time.Duration{750 * time.Millisecond})
		equal(t, "text", s.text, "hello")
		equal(t, "fallback", s.resp.IsFallback, true)
		for _, n := range s.notices {
			t.Log(n.Kind, n.Candidate, n.Next, n.Text)
		}
	})
}

var _ = context.Background
