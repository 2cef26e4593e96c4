package agent

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"pgregory.net/rapid"
)

// fifty is a piece of fifty characters.
const fifty = "I will now look at the file once more and then go "

// chants adds the text as a whole and gives after how many characters it was
// found to chant; 0 for never.
func chants(text string) int {
	c, n := guard().Chant(), 0
	for _, r := range text {
		n++
		if c.Add(string(r)) {
			return n
		}
	}
	return 0
}

// The rows are texts and the character at which they are found to chant.
func TestContentChanting(t *testing.T) {
	if utf8.RuneCountInString(fifty) != 50 {
		t.Fatal("the piece has not fifty characters")
	}
	sentence := "Let me think about what the tests say about the parser, and why it fails there. " // 80
	paragraph := strings.Repeat("abcdefghi ", 30) + "and that is where the whole of it begins once more, "
	for _, row := range []struct {
		kind string
		text string
		want int
	}{
		{"fifty characters ten times", strings.Repeat(fifty, 10), 500},
		{"fifty characters nine times", strings.Repeat(fifty, 9), 0},
		{"nine times, then something else, then nine times", strings.Repeat(fifty, 9) + "No: " + strings.Repeat(fifty, 9), 0},
		{"after other text", "The parser is in wire.go, and this is what it does.\n\n" + strings.Repeat(fifty, 12), 53 + 500},
		{"a sentence of eighty characters", strings.Repeat(sentence, 12), 800},
		{"a whole paragraph", strings.Repeat(paragraph, 10), 10 * len(paragraph)},
		{"lines", strings.Repeat(strings.TrimSpace(fifty)+"\n", 10), 500},
		{"one word", strings.Repeat("ha ", 200), 500},
		{"one character", strings.Repeat("a", 600), 500},
		{"no letters of the alphabet", strings.Repeat("もう一度ファイルを見てみましょう。", 40), 500},
		{"a piece longer than what is remembered", strings.Repeat(numbers(0, 400), 11), 0},

		{"a numbered text", numbers(0, 3000), 0},
		{"similar sentences", similar(200), 0},
		{"a list", strings.Repeat("- the same item in a list that says the same again and again\n", 100), 0},
		{"a numbered list", strings.Repeat("1. the same item in a list that says the same again and again\n", 100), 0},
		{"an indented list", strings.Repeat("  * the same item in a list that says the same again and again\n", 100), 0},
		{"a table", strings.Repeat("| the same cell | and the same cell | and the same again |\n", 100), 0},
		{"a drawn table", strings.Repeat("│ the same cell │ and the same cell │ and the same again │\n├───┼───┤\n", 100), 0},
		{"headings", strings.Repeat("## The same heading\n\nand a short paragraph under it, the same each time.\n\n", 100), 0},
		{"rules", strings.Repeat("and a short paragraph, the same each time, in between\n\n---\n\n", 100), 0},
		{"code in fences", "```go\n" + strings.Repeat("0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\n", 100) + "```\n", 0},
		{"code in longer fences", "~~~~\n~~~\n" + strings.Repeat("0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\n", 100) + "~~~~\n", 0},
		{"indented code", strings.Repeat("    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\n", 100), 0},
		{"the same code many times", strings.Repeat("Now:\n```\nmake test\n```\n", 100), 0},
		{"chanting after code", "```\ncode\n```\n" + strings.Repeat(fifty, 10), 13 + 500},
		{"chanting after code in a line", "```code``` is that.\n" + strings.Repeat(fifty, 10), 20 + 500},
		{"chanting with emphasis", strings.Repeat("**I will now** look at the file once more, and then\n", 10), 520},
	} {
		t.Run(row.kind, func(t *testing.T) {
			if got := chants(row.text); got != row.want {
				t.Errorf("found at %d, want %d", got, row.want)
			}
		})
	}
}

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%d and then ", i)
	}
	return b.String()
}

func similar(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "I have edited the file number %d and it is as it should be.\n", i)
	}
	return b.String()
}

// What is found depends on the text and not on the pieces it comes in.
func TestChantingIsFoundInAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.StringMatching("[a-d#|\\-`1. \n]{1,30}").Draw(t, "piece")
		text := rapid.StringMatching("[a-z ]{0,20}").Draw(t, "before") + strings.Repeat(piece, 520/len(piece)+1)
		whole := guard().Chant().Add(text)
		pieces := guard().Chant()
		found := false
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			found = pieces.Add(rest[:n]) || found
			rest = rest[n:]
		}
		if found != whole {
			t.Fatalf("in one piece %v, in many %v", whole, found)
		}
	})
}

// A piece without a structure is found at its tenth coming and not before,
// whatever stood before it.
func TestChantingIsFoundAtItsTenthComing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringMatching("[A-Z]{0,200}").Draw(t, "before")
		// The capital letter at its end makes sure that the piece is not itself a
		// repetition, and that no end of what stood before belongs to it.
		piece := rapid.StringMatching("[a-c]{49,300}").Draw(t, "piece") + "é"
		n := utf8.RuneCountInString(piece)
		if got, want := chants(before+strings.Repeat(piece, 11)), len(before)+10*n; got != want {
			t.Fatalf("found at %d, want %d", got, want)
		}
	})
}

// No text is found to chant that does not end in the repetitions.
func TestChantingIsWhatWasFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []rune(strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"aaaaaaaaaa", "ab", "the same words ", "x", strings.Repeat("y", 60), strings.Repeat("ab", 100)}), 0, 300).Draw(t, "words"), ""))
		n := chants(string(text))
		if n == 0 {
			return
		}
		for period := 1; period <= chantPeriod; period++ {
			long := 10 * max(period, 50)
			ok := long <= n
			for i := n - long + period; ok && i < n; i++ {
				ok = text[i] == text[i-period]
			}
			if ok {
				return
			}
		}
		t.Fatalf("found at %d, where nothing repeats itself", n)
	})
}

func TestChantTakesNoMoreMemory(t *testing.T) {
	c := guard().Chant()
	text, i := similar(2000), 0
	if n := testing.AllocsPerRun(15000, func() { c.Add(text[i : i+4]); i += 4 }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
	if size := unsafe.Sizeof(*c); size > 64<<10 {
		t.Errorf("%d bytes", size)
	}
}

func BenchmarkChant(b *testing.B) {
	text := similar(2000)
	c := guard().Chant()
	b.SetBytes(4)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i+4 > len(text) {
			i = 0
		}
		c.Add(text[i : i+4])
		i += 4
	}
}

func BenchmarkChantFifteenThousandEvents(b *testing.B) {
	text := similar(1000)
	b.ReportAllocs()
	for b.Loop() {
		c := guard().Chant()
		for i := range 15000 {
			c.Add(text[i*4%40000 : i*4%40000+4])
		}
	}
}
