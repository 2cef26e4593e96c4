package journal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// long is a session of many entries of 1 KB each, in transactions of four, as a
// turn writes them, beside another one that grew at the same time.
func long(b *testing.B, j *Journal, entries int) (id string) {
	data := []byte(`"` + strings.Repeat("why do cats ", 85) + `"`)
	four := []Entry{{Kind: "input", Data: data}, {Kind: "intent", Data: data}, {Kind: "effect", Data: data}, {Kind: "answer", Data: data}}
	s, other := newSession(b, j), newSession(b, j)
	defer func() { must(b, s.Close()); must(b, other.Close()) }()
	for range entries / len(four) {
		must(b, s.Append(context.Background(), nil, four...))
		must(b, other.Append(context.Background(), nil, four...))
	}
	return s.ID()
}

// BenchmarkTakeSession measures how long it takes to go on with a session.
func BenchmarkTakeSession(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n, " entries"), func(b *testing.B) {
			j := newJournal(b)
			id := long(b, j, n)
			b.ReportAllocs()
			for b.Loop() {
				s, entries, damaged, err := j.TakeSession(context.Background(), id)
				if err != nil || len(entries) != n || len(damaged) > 0 {
					b.Fatal(len(entries), damaged, err)
				}
				b.StopTimer()
				must(b, s.Close())
				b.StartTimer()
			}
		})
	}
}

// BenchmarkAppend measures one small durable entry, beside the bare fsync of
// as many bytes that no journal can do without.
func BenchmarkAppend(b *testing.B) {
	entry := Entry{Kind: "intent", Data: []byte(`{"call":"call_1","name":"read_file","arguments":"eyJwYXRoIjoiYS5nbyJ9"}`)}
	b.Run("entry", func(b *testing.B) {
		s := newSession(b, newJournal(b))
		b.ReportAllocs()
		for b.Loop() {
			must(b, s.Append(context.Background(), nil, entry))
		}
	})
	b.Run("entry and head", func(b *testing.B) {
		s := newSession(b, newJournal(b))
		h := &Head{Title: "Why do cats", State: "running", Labels: map[string]string{"directory": "/home/cat", "model": "claude"}}
		b.ReportAllocs()
		for b.Loop() {
			must(b, s.Append(context.Background(), h, entry))
		}
	})
	b.Run("fsync alone", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "f"))
		must(b, err)
		defer func() { _ = f.Close() }()
		pages := make([]byte, 3*4096)
		for b.Loop() {
			_, err := f.Write(pages)
			must(b, err)
			must(b, f.Sync())
		}
	})
}

// BenchmarkPut measures a file of 10 KB that is new, and one that is kept.
func BenchmarkPut(b *testing.B) {
	content := []byte(strings.Repeat("why do cats ", 850))
	b.Run("new", func(b *testing.B) {
		blobs := newJournal(b).Blobs()
		i := 0
		for b.Loop() {
			_, err := blobs.Put(context.Background(), fmt.Appendf(content, "%d", i))
			must(b, err)
			i++
		}
	})
	b.Run("kept", func(b *testing.B) {
		blobs := newJournal(b).Blobs()
		for b.Loop() {
			_, err := blobs.Put(context.Background(), content)
			must(b, err)
		}
	})
}

// BenchmarkSessions measures the list of a machine that has been used for long.
func BenchmarkSessions(b *testing.B) {
	j := newJournal(b)
	for i := range 2000 {
		s, err := j.NewSession(context.Background(), Head{Title: "talk", Labels: map[string]string{"directory": fmt.Sprint("/home/cat/", i%10)}})
		must(b, err)
		must(b, s.Close())
	}
	b.ReportAllocs()
	for b.Loop() {
		list, _, err := j.Sessions(context.Background(), SessionFilter{Labels: map[string]string{"directory": "/home/cat/3"}, Limit: 20})
		if err != nil || len(list) != 20 {
			b.Fatal(len(list), err)
		}
	}
}
