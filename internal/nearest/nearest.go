// Package nearest finds the name that somebody probably meant.
package nearest

import "strings"

// Name gives the one of names that is closest to s: at most one typing error
// (a wrong, missing, surplus or swapped letter) per three letters, or a name
// that s begins, or that begins s. It is empty if none is close. Case does not count.
func Name(s string, names []string) string {
	if len(s) < 2 {
		return ""
	}
	best, least := "", max(1, len(s)/3)+1
	lower := strings.ToLower(s)
	for _, name := range names {
		if d := distance(lower, strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(s) < 3 {
		return best
	}
	for _, name := range names {
		n := strings.ToLower(name)
		if strings.HasPrefix(n, lower) || len(n) >= 3 && strings.HasPrefix(lower, n) {
			return name
		}
	}
	return ""
}

// Hint is ` (did you mean "x"?)`, or empty if nothing is close.
func Hint(s string, names []string) string {
	if n := Name(s, names); n != "" {
		return ` (did you mean "` + n + `"?)`
	}
	return ""
}

// distance is the optimal string alignment distance.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(y)]
}
