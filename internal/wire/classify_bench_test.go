package wire

import (
	"strings"
	"testing"
)

func BenchmarkClassify(b *testing.B) {
	for _, c := range []struct {
		name   string
		status int
		text   string
	}{
		{"RateLimit", 429, "Rate limit reached for model x on tokens per min (TPM): Limit 500, Used 400, Requested 200. Please try again in 23.03s."},
		{"Parameter", 400, "Unsupported parameter: 'presence_penalty' is not supported with this model."},
		{"Wordless", 500, "An unexpected error occurred. Please try again later."},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := Answer{Status: c.status, Body: said(c.text)}
			b.ReportAllocs()
			for b.Loop() {
				Classify(a)
			}
		})
	}
}

// A server that answers with a page of text must not cost more than a moment.
func BenchmarkClassifyLongText(b *testing.B) {
	text := strings.Repeat("The model does not support parameter foo when context length exceeds the maximum of tokens; please retry later. ", 400)
	a := Answer{Status: 400, Body: []byte(text)}
	for b.Loop() {
		Classify(a)
	}
}
