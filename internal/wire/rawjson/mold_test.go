package rawjson

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAMoldFitsWhatDiffersInOneStringAlone(t *testing.T) {
	data := []byte(`{"a":[{"b":"one","c":null}],"d":"x"}`)
	var m Mold
	if _, ok := m.Fits(data); ok {
		t.Fatal("a mold of nothing fits")
	}
	m.Take(data, Get(first(Elements(Get(data, "a"))), "b"))
	for in, want := range map[string]string{
		`{"a":[{"b":"one","c":null}],"d":"x"}`:             `"one"`,
		`{"a":[{"b":"","c":null}],"d":"x"}`:                `""`,
		`{"a":[{"b":"ü 日","c":null}],"d":"x"}`:             `"ü 日"`,
		`{"a":[{"b":"one","c":null}],"d":"y"}`:             "",
		`{"a":[{"b":"one","c":1}],"d":"x"}`:                "",
		`{"a":[{"b":"one\n","c":null}],"d":"x"}`:           "",
		`{"a":[{"b":"one","b":"two","c":null}],"d":"x"}`:   "",
		`{"a":[{"b":"on` + "\n" + `e","c":null}],"d":"x"}`: "",
		`{"a":[{"b":"`: "",
		``:             "",
	} {
		if got, ok := m.Fits([]byte(in)); string(got) != want || ok != (want != "") {
			t.Errorf("%s: %q, %t; want %q", in, got, ok, want)
		}
	}
	m.Break()
	if _, ok := m.Fits(data); ok {
		t.Error("a broken mold fits")
	}
}

func first[T any](seq func(func(T) bool)) (out T) {
	seq(func(v T) bool { out = v; return false })
	return out
}

// Whatever fits is valid, and says the same as the careful readers.
func TestWhatFitsIsWhatTheCarefulReaderReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\\\"{}[]:, \n\x01\x7fé日\xff")), 0, 6)
		around := rapid.StringOfN(rapid.RuneFrom([]rune("xy ü")), 0, 5, -1).Draw(t, "around")
		shape := func(text string) []byte {
			return []byte(`{"k":"` + around + `","t":{"v":"` + text + `"},"n":[1,"` + around + `"]}`)
		}
		learned := shape(strings.Map(func(r rune) rune {
			if r < ' ' || r == '"' || r == '\\' {
				return '_'
			}
			return r
		}, string(word.Draw(t, "learned"))))
		var m Mold
		m.Take(learned, Path(learned, "t", "v"))
		data := shape(string(word.Draw(t, "data")))
		got, ok := m.Fits(data)
		if !ok {
			return
		}
		if !Valid(data) {
			t.Fatalf("%q fits and is not valid", data)
		}
		if want := Path(data, "t", "v"); !bytes.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", data, got, want)
		}
	})
}
