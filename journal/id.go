package journal

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// alphabet is Crockford's base 32: no i, l, o, u.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

const (
	timeDigits   = 9 // 45 bits of milliseconds: till the year 3084
	randomDigits = 7 // 35 bits
)

// ids makes the ids of one process: 16 characters that sort in the order in
// which they were made, by the millisecond between processes.
type ids struct {
	mu   sync.Mutex
	ms   int64
	tail uint64
}

func (s *ids) next(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ms := now.UnixMilli(); ms > s.ms {
		s.ms, s.tail = ms, rand.Uint64N(1<<(5*randomDigits))
	} else if s.tail++; s.tail>>(5*randomDigits) != 0 {
		s.ms, s.tail = s.ms+1, 0
	}
	var b [timeDigits + randomDigits]byte
	put(b[:timeDigits], uint64(s.ms))
	put(b[timeDigits:], s.tail)
	return string(b[:])
}

func put(digits []byte, n uint64) {
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = alphabet[n%32]
		n /= 32
	}
}

// tidy reads an id as people type it.
var tidy = strings.NewReplacer("o", "0", "i", "1", "l", "1", "-", "", " ", "")

func tidyID(s string) string { return tidy.Replace(strings.ToLower(s)) }
