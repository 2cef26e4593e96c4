package journal

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// BenchmarkCalls measures durable calls a second: the input before anything
// else happens, two notices, the answer; from one caller and from many at once.
func BenchmarkCalls(b *testing.B) {
	prompt := strings.Repeat("why do cats ", 85) // 1 KB
	for _, bench := range []struct {
		name    string
		callers int
	}{{"1 caller", 1}, {"64 callers", 32}, {"512 callers", 256}} {
		b.Run(bench.name, func(b *testing.B) {
			j := newJournal(b)
			var failed atomic.Int64
			b.SetParallelism(bench.callers)
			one := func() {
				ctx := context.Background()
				id, err := j.Begin(ctx, Call{Source: "bench", Request: ninelives.Prompt(prompt)})
				if err == nil {
					_ = j.Note(ctx, id, ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 1})
					_ = j.Note(ctx, id, ninelives.Notice{Kind: ninelives.NoticeSwitch, Attempt: 1})
					err = j.End(ctx, id, Outcome{Response: answer(prompt)})
				}
				if err != nil {
					failed.Add(1)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			if bench.callers == 1 {
				for range b.N {
					one()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one()
					}
				})
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			if failed.Load() > 0 {
				b.Errorf("%d failed", failed.Load())
			}
		})
	}
}

// BenchmarkBegin measures inputs alone.
func BenchmarkBegin(b *testing.B) {
	prompt := strings.Repeat("why do cats ", 85) // 1 KB
	j := newJournal(b)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := j.Begin(context.Background(), Call{Source: "bench", Request: ninelives.Prompt(prompt)}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkOpen(b *testing.B) {
	path := b.TempDir() + "/j"
	openTest(b, path)
	for b.Loop() {
		j, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
