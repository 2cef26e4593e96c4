package wire

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The versions of the API that Bedrock and Vertex want in the body.
//
// Source: the vendors' pages on Claude, 2026, and recorded requests.
const (
	bedrockVersion = "bedrock-2023-05-31"
	vertexVersion  = "vertex-2023-10-16"
)

// claudeDialect is the dialect of Claude models at Anthropic, Bedrock
// (InvokeModel) and Vertex: where they run, and how a version is made to think.
//
//   - Before 3.7 a model does not think; up to 4.5 it takes a budget in tokens.
//   - From 4.6 on it takes adaptive thinking with an effort; xhigh came with 4.7.
//   - From 4.7 on it takes neither a budget nor sampling parameters.
//
// Source: the adaptive thinking, effort and migration pages, 2026; what other
// clients met: hermes-agent#11137, cherry-studio#15532, goose#9281.
func claudeDialect(host, model string) Dialect {
	d := Dialect{Name: "anthropic"}
	switch {
	case isBedrock(host):
		d.Name, d.BodyVersion, d.Drop = "bedrock-anthropic", bedrockVersion, []string{"model", "stream"}
	case strings.HasSuffix(host, "aiplatform.googleapis.com"):
		d.Name, d.BodyVersion, d.Drop = "vertex-anthropic", vertexVersion, []string{"model"}
	}
	version, ok := claudeVersion(model)
	switch {
	case !ok:
	case version < 307:
		d.EffortParam, d.Drop = "thinking", append(d.Drop, "thinking")
	case version < 406:
		d.EffortParam = "thinking"
	case version < 407:
		d.Efforts = map[string]string{"xhigh": "high"}
	default:
		d.EffortParam = "adaptive"
		d.Drop = append(d.Drop, "temperature", "top_p", "top_k")
	}
	return d
}

// isBedrock reports that a host is that of Bedrock's own API.
func isBedrock(host string) bool {
	return strings.HasPrefix(host, "bedrock-runtime") && strings.Contains(host, ".amazonaws.com")
}

// claudeVersion reads the version out of a model's name, as a hundred times
// the major one and the minor one: 3.7 is 307. It stands after the family
// (claude-opus-4-1-20250805) or before it (claude-3-7-sonnet); a number of
// eight digits is a date.
func claudeVersion(model string) (int, bool) {
	_, rest, ok := strings.Cut(strings.ToLower(model), "claude")
	if !ok {
		return 0, false
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	number := func(word string) (int, bool) {
		n, err := strconv.Atoi(strings.TrimPrefix(word, "v"))
		return n, err == nil && n < 100
	}
	at := slices.IndexFunc(words, func(word string) bool { _, ok := number(word); return ok })
	if at < 0 {
		return 0, false
	}
	major, _ := number(words[at])
	minor := 0
	if at+1 < len(words) {
		if n, ok := number(words[at+1]); ok {
			minor = n
		}
	}
	return major*100 + minor, true
}
