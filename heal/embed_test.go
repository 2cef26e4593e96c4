package heal

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// embedder answers each request as its script says, the last step again and again.
type embedder struct {
	candidate ninelives.Candidate
	steps     []error // nil answers

	mu    sync.Mutex
	asked []time.Time
	texts [][]string
}

func vectorsOf(provider, model string, steps ...error) *embedder {
	return &embedder{candidate: ninelives.Candidate{Provider: provider, Model: model, Key: provider, Host: provider + ".test"}, steps: steps}
}

func (e *embedder) Name() string                   { return e.candidate.Name() }
func (e *embedder) Candidate() ninelives.Candidate { return e.candidate }

func (e *embedder) Embed(ctx context.Context, req *ninelives.EmbedRequest) (*ninelives.EmbedResponse, error) {
	e.mu.Lock()
	err := e.steps[min(len(e.asked), len(e.steps)-1)]
	e.asked = append(e.asked, time.Now())
	e.texts = append(e.texts, req.Texts)
	e.mu.Unlock()
	switch err {
	case nil:
	case errSilent:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return nil, err
	}
	return &ninelives.EmbedResponse{Vectors: [][]byte{[]byte("[1]")}, Model: e.candidate.Model, Usage: ninelives.Usage{Input: 3}, Candidate: e.Name(), Attempts: 1}, nil
}

var errSilent = errors.New("it says nothing")

func chainOf(t *testing.T, opts []Option, chain ...ninelives.Embedder) *Embedder {
	t.Helper()
	e, err := NewEmbedder(chain, opts...)
	if err != nil {
		t.Fatal(err)
	}
	e.healed.random = func() float64 { return 0.5 }
	return e
}

func TestVectorsAreHealedLikeAnswers(t *testing.T) {
	limited := fault(ninelives.ClassRateLimit)
	limited.RetryAfter = 3 * time.Second
	for name, c := range map[string]struct {
		first, second []error
		asked         [2]int
		took          time.Duration
		attempts      int
		by            string
	}{
		"a good answer":                {[]error{nil}, []error{nil}, [2]int{1, 0}, 0, 1, "a/m"},
		"a wait that is told is kept":  {[]error{limited, nil}, []error{nil}, [2]int{2, 0}, 3 * time.Second, 2, "a/m"},
		"a refused key goes elsewhere": {[]error{fault(ninelives.ClassAuth)}, []error{nil}, [2]int{1, 1}, 0, 2, "b/m"},
		"a plain error fails over":     {[]error{errors.New("out of order")}, []error{nil}, [2]int{-1, 1}, -1, -1, "b/m"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := vectorsOf("a", "m", c.first...), vectorsOf("b", "m", c.second...)
				start := time.Now()
				got, err := chainOf(t, nil, a, b).Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"x"}})
				if err != nil {
					t.Fatal(err)
				}
				if got.Candidate != c.by || got.IsFallback != (c.by == "b/m") || string(got.Vectors[0]) != "[1]" || got.Usage.Input != 3 {
					t.Errorf("%+v", got)
				}
				if c.attempts > 0 && got.Attempts != c.attempts || c.attempts < 0 && got.Attempts != len(a.asked)+len(b.asked) {
					t.Errorf("%d attempts", got.Attempts)
				}
				if c.asked[0] >= 0 && len(a.asked) != c.asked[0] || len(b.asked) != c.asked[1] {
					t.Errorf("asked %d and %d times", len(a.asked), len(b.asked))
				}
				if took := time.Since(start); c.took >= 0 && (took < c.took || took > c.took+c.took/2) {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// Nobody can tell by looking that a vector comes from another model.
func TestVectorsOfDifferentModelsAreNeverMixed(t *testing.T) {
	_, err := NewEmbedder([]ninelives.Embedder{vectorsOf("a", "small", nil), vectorsOf("b", "large", nil)})
	if err == nil || !strings.Contains(err.Error(), "b/large cannot stand in for a/small") {
		t.Errorf("error %v", err)
	}
	if _, err := NewEmbedder(nil); err == nil {
		t.Error("a chain of nobody is taken")
	}
	// An option cannot smuggle another one in, nor a text in place of vectors.
	synctest.Test(t, func(t *testing.T) {
		other := model("c", says("hello"))
		a := vectorsOf("a", "m", fault(ninelives.ClassAuth))
		e := chainOf(t, []Option{Fallback(other), RefusalRoute(other), Degraded(Canned("sorry"))}, a)
		if got, err := e.Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"x"}}); err == nil {
			t.Errorf("answer %+v", got)
		}
		if len(other.asked) != 0 || len(a.asked) != 1 {
			t.Errorf("asked %d and %d times", len(a.asked), len(other.asked))
		}
	})
}

// What calls for vectors find out about a candidate, others go by, and the
// other way round.
func TestVectorsShareTheHealthOfTheirCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := DefaultPolicy()
		shared := SharedHealth(NewHealth(&p))
		a, b := vectorsOf("a", "m", fault(ninelives.ClassAuth)), vectorsOf("b", "m", nil)
		for range 3 {
			if _, err := chainOf(t, []Option{shared}, a, b).Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"x"}}); err != nil {
				t.Fatal(err)
			}
		}
		if len(a.asked) != 1 || len(b.asked) != 3 {
			t.Errorf("asked %d and %d times", len(a.asked), len(b.asked))
		}
	})
}

// A repair is for the request of a chat: the same request for vectors is not
// sent again because of one.
func TestVectorsAreNotRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fault(ninelives.ClassFormat)
		f.Repairs = []ninelives.Repair{{Name: "drop_parameter", Param: "dimensions"}}
		a := vectorsOf("a", "m", f)
		if _, err := chainOf(t, nil, a).Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"x"}}); err == nil || len(a.asked) != 1 {
			t.Errorf("asked %d times, %v", len(a.asked), err)
		}
		if len(f.Repairs) != 1 {
			t.Error("the fault of another was changed")
		}
	})
}

func TestVectorsEndWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := chainOf(t, nil, vectorsOf("a", "m", errSilent)).Embed(ctx, &ninelives.EmbedRequest{Texts: []string{"x"}})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
