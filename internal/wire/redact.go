package wire

import (
	"strings"
	"unicode"
)

// maxMessage bounds a message, in bytes.
const maxMessage = 600

// secretREs find what may be a credential. The first group, if any, is kept.
var secretREs = []*phrase{
	texts(`(\b(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{12,}`),
	exact(`\b(?:sk|rk|pk|ak|xai|gsk|hf|fw|csk|nvapi|tgp|pplx|r8|glpat|ghp|gho|github_pat|AKIA|ASIA)[-_][A-Za-z0-9_*.\-]{3,}`),
	exact(`\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b`),
	exact(`\bAIza[A-Za-z0-9_*-]{8,}`),
	exact(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]*`),
	texts(`((?:^|[^a-z])(?:api[-_ ]?key|x-api-key|access[-_ ]?key|key|access[-_ ]?token|token|secret|authorization|password|signature|sig)(?: (?:is|was|provided|given|used|id))*['"]?\s*[:=]\s*['"]?)[A-Za-z0-9_*.+/~-]{8,}=*`),
	texts(`(\bkey ['"(<\[]?)[A-Za-z0-9_*.-]*\d[A-Za-z0-9_*.-]{10,}`),
	exact(`[A-Za-z0-9]{0,8}\*{4,}[A-Za-z0-9]{0,8}`),
	exact(`(://)[^/\s:@]+:[^/\s@]+@`),
	exact(`\b[0-9a-fA-F]{40,}\b`),
	exact(`\b[A-Za-z0-9_-]{48,}\b`),
}

const redacted = "[redacted]"

// Redact makes a text fit for a log: one line, of bounded length, without
// control characters and without what looks like a credential.
func Redact(s string) string {
	s = strings.ToValidUTF8(string(clip([]byte(s), 8*maxMessage)), "\ufffd")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	for _, p := range secretREs {
		s = p.replace(s, "${1}"+redacted)
	}
	return bounded(s, maxMessage)
}

// bounded cuts a text to at most n bytes.
func bounded(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(string(clip([]byte(s), n-len("…")))) + "…"
}
