package heal

import "unicode"

// TextTokens estimates how many tokens a text has, as tokenizers cut it before
// they look at their vocabulary: words with the blank before them, up to three
// digits, runs of signs, line ends and indentation. Signs of scripts without
// blanks are a token each; letters of other scripts than Latin about half of
// one. It is an estimate, for limits and for clients that plan by it.
func TextTokens(text string) int {
	sum := 0.0
	run, kind := 0, kindNone
	end := func() {
		switch kind {
		case kindWord:
			sum += 1 + float64(max(run-8, 0))/5
		case kindForeign:
			sum += max(1, float64(run)*0.45)
		case kindDigits:
			sum += float64((run + 2) / 3)
		case kindSigns:
			sum += float64((run + 1) / 2)
		case kindBlank:
			if run > 1 {
				sum++ // one alone belongs to the word behind it
			}
		case kindLine:
			sum++
		}
	}
	for _, r := range text {
		k := kindOf(r)
		if k == kindSelf {
			end()
			run, kind = 0, kindNone
			sum++
			continue
		}
		if k != kind {
			end()
			run, kind = 0, k
		}
		run++
	}
	end()
	return int(sum + 0.5)
}

// kind is what a character is to a tokenizer.
type kind int

const (
	kindNone kind = iota
	kindWord
	kindForeign
	kindDigits
	kindSigns
	kindBlank
	kindLine
	kindSelf // a token by itself
)

func kindOf(r rune) kind {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return kindWord
	case r == '\n' || r == '\r':
		return kindLine
	case r == ' ' || r == '\t':
		return kindBlank
	case r >= '0' && r <= '9':
		return kindDigits
	case r < 0x80:
		return kindSigns
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
		return kindSelf
	case unicode.In(r, unicode.Latin):
		return kindWord
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return kindForeign
	}
	return kindSelf // pictures and the like
}
