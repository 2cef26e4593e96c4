//go:build unix

package journal

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// cpu is the processor time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkGateway measures what a gateway does: the client's bytes, durable,
// then the end with one attempt and an answer of 1 KB.
func BenchmarkGateway(b *testing.B) {
	reply := []byte(strings.Repeat("data: cat", 110))
	for _, bench := range []struct {
		name   string
		body   int
		later  bool
		forget bool
		key    string
	}{
		{"1KB", 1 << 10, false, false, ""},
		{"1KB later", 1 << 10, true, false, ""},
		{"1KB later forget", 1 << 10, true, true, ""},
		{"1KB later sealed", 1 << 10, true, false, strings.Repeat("01", keySize)},
		{"64KB later", 64 << 10, true, false, ""},
		{"64KB later forget", 64 << 10, true, true, ""},
		{"64KB later sealed", 64 << 10, true, false, strings.Repeat("01", keySize)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			j, err := OpenWith(b.TempDir()+"/j", Options{Key: bench.key})
			if err != nil {
				b.Fatal(err)
			}
			c := relayed(strings.Repeat("x", bench.body))
			var failed atomic.Int64
			var waited atomic.Int64
			b.SetParallelism(64)
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu()
			b.RunParallel(func(pb *testing.PB) {
				ctx := context.Background()
				for pb.Next() {
					start := time.Now()
					id, err := j.Begin(ctx, c)
					waited.Add(int64(time.Since(start)))
					o := Outcome{Raw: reply, Status: 200, Forget: bench.forget, Cost: 0.01, Usage: ninelives.Usage{Input: 100, Output: 100},
						Attempts: []Attempt{{Number: 1, Candidate: "openai/gpt", Status: 200, Began: start, Took: time.Second, Cost: 0.01, Usage: ninelives.Usage{Input: 100, Output: 100}}}}
					if err == nil && bench.later {
						err = j.EndLater(ctx, id, o, func(err error) {
							if err != nil {
								failed.Add(1)
							}
						})
					} else if err == nil {
						err = j.End(ctx, id, o)
					}
					if err != nil {
						failed.Add(1)
					}
				}
			})
			if err := j.Close(); err != nil {
				b.Error(err)
			}
			b.StopTimer()
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/call")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64(waited.Load())/1e6/float64(b.N), "begin-ms")
			if failed.Load() > 0 {
				b.Errorf("%d failed", failed.Load())
			}
		})
	}
}
