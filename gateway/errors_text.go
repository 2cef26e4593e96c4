package gateway

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/visible"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// The bounds of what is said. A message has about 600 bytes in all
// (wire.Redact).
const (
	maxReason = 300 // bytes of a provider's words
	maxNames  = 3   // candidates that are named
	maxName   = 64  // bytes of the name of one
)

// message says what failed, why, and what to do, for a person. The first
// sentence is short: terminals print it.
func (v failing) message(p ninelives.Protocol, now time.Time) string {
	if v.refused != nil {
		return v.refused.Text
	}
	switch v.trouble {
	case troubleTooLong:
		return v.tooLong(p)
	case troubleTooLarge:
		return "The request is too large for the model. Shorten the conversation, or leave out large files and results of tools."
	case troubleFiltered:
		return v.filtered()
	case troubleMalformed:
		return v.malformed()
	case troubleCanceled:
		return "The client ended the call."
	case troubleInternal:
		return "The gateway failed inside. The call is in its log."
	case troubleLimited:
		return fmt.Sprintf("Rate limited by %s. Please try again in %ss.", v.names(), wholeSeconds(v.wait))
	case troubleQuota:
		return sentences("Out of credit or quota at "+v.names()+".", v.backAt("Its quota is back in", now),
			"Whoever runs the gateway has to add credit, raise the limit or add a fallback.")
	case troubleNoModel:
		return "No such model: " + v.summary() + ". Check the model's name; GET /v1/models lists what is served."
	case troubleDeadline:
		return sentences("Out of time"+v.after()+".", sentenceOf("Tried", v.summary()),
			"Allow more time (x-ninelives-deadline-ms), or name a faster model.")
	}
	if len(v.tried) == 0 {
		return sentences("No candidate can answer now: all of them are out of service.", v.backAt("The first is expected back in", now),
			"Try again then, or name another model.")
	}
	return sentences("All candidates failed: "+v.summary()+".", v.attempts(), v.backAt("The first is expected back in", now), v.advice())
}

// advice says what to do about a call that everything was tried for.
func (v failing) advice() string {
	auth := 0
	for _, t := range v.tried {
		switch t.Class {
		case ninelives.ClassAuth:
			auth++
		case ninelives.ClassTruncated:
			return "Raise the limit of tokens."
		case ninelives.ClassInvalidOutput:
			return "Simplify the schema, or name another model."
		}
	}
	switch {
	case auth == len(v.tried):
		return "It is the gateway's key that was refused, not yours: whoever runs the gateway has to check it."
	case v.back > 0:
		return "Try again then, or name another model."
	}
	return "Try again later, or name another model."
}

// tooLong says it in the words that clients look for.
//
// Source: notes/clients.md §5, measured; OpenAI's and Google's own errors.
func (v failing) tooLong(p ninelives.Protocol) string {
	const advice = "Shorten the conversation, or name a model with a larger window."
	n, m := v.fault.Requested, v.fault.Window
	switch {
	case p == ninelives.AnthropicMessages && v.counted():
		return fmt.Sprintf("prompt is too long: %d tokens > %d maximum. %s", n, m, advice)
	case p == ninelives.AnthropicMessages && m > 0:
		return fmt.Sprintf("prompt is too long: it exceeds the context window of %d tokens. %s", m, advice)
	case p == ninelives.AnthropicMessages:
		return "prompt is too long: it exceeds the context window of the model. " + advice
	case p == ninelives.Gemini && v.counted():
		return fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d). %s", n, m, advice)
	case v.counted():
		return fmt.Sprintf("This model's maximum context length is %d tokens, but the request has %d tokens. %s", m, n, advice)
	case m > 0:
		return fmt.Sprintf("This model's maximum context length is %d tokens, and the request exceeds the context window. %s", m, advice)
	}
	return "The request exceeds the context window of the model. " + advice
}

// counted says that both numbers of an overflow are known.
func (v failing) counted() bool { return v.fault != nil && v.fault.Requested > 0 && v.fault.Window > 0 }

// filtered says who has refused the content, and the provider's reason.
func (v failing) filtered() string {
	f := v.fault
	who := cmp.Or(shownName(f.Candidate), "the provider")
	what := "The content was refused by the rules of " + who + "."
	switch f.Class {
	case ninelives.ClassRefusal:
		what = "The model declined to answer (" + who + ")."
	case ninelives.ClassGuard:
		return "A safety guard stopped the call. It is not repeated: change the request."
	}
	reason := ""
	if words := safeReason(f.Message); words != "" {
		reason = "Its reason: " + strings.TrimSuffix(words, ".")
		if category := safeReason(f.Code); category != "" && !strings.Contains(words, category) {
			reason += " (" + category + ")"
		}
		reason += "."
	} else if category := safeReason(f.Code); category != "" {
		reason = "Its reason: " + category + "."
	}
	return sentences(what, reason, "Change the request: it was not sent to anybody else.")
}

// malformed gives the reason first and as it was said: there are clients that
// find in it which field to leave out. What is ours to say follows.
func (v failing) malformed() string {
	reason := safeReason(v.fault.Message)
	switch {
	case v.fault.Candidate == "" && reason != "":
		return reason
	case v.fault.Candidate == "":
		return "The request is not valid. Correct it: it was sent to nobody."
	case reason == "":
		return shownName(v.fault.Candidate) + " takes the request for malformed and gives no reason. Check its parameters."
	case !strings.ContainsAny(reason[len(reason)-1:], ".!?…"):
		reason += "."
	}
	return reason + " (" + shownName(v.fault.Candidate) + " says so of the request: correct it.)"
}

// summary names what was tried and how it failed: the candidates in their
// order, each with its last failure.
func (v failing) summary() string {
	type row struct{ name, how string }
	var rows []row
	for _, t := range v.tried {
		r := row{name: cmp.Or(shownName(t.Candidate), "the provider"), how: classWords[t.Class]}
		if r.how == "" {
			r.how = "failed"
		}
		if t.Status != 0 {
			r.how += fmt.Sprintf(" (HTTP %d)", t.Status)
		}
		known := false
		for i := range rows {
			if rows[i].name == r.name {
				rows[i].how, known = r.how, true
			}
		}
		if !known {
			rows = append(rows, r)
		}
	}
	var parts []string
	for i, r := range rows {
		if i == maxNames {
			parts = append(parts, fmt.Sprintf("and %d more", len(rows)-i))
			break
		}
		parts = append(parts, r.name+" "+r.how)
	}
	return strings.Join(parts, "; ")
}

// names are the candidates that were tried.
func (v failing) names() string {
	var names []string
	for _, t := range v.tried {
		if n := cmp.Or(shownName(t.Candidate), "the provider"); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if more := len(names) - maxNames; more > 0 {
		names = append(names[:maxNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// classWords say how a candidate failed.
var classWords = map[ninelives.Class]string{
	ninelives.ClassRateLimit:     "rate limited",
	ninelives.ClassBilling:       "out of credit or quota",
	ninelives.ClassAuth:          "refused the gateway's key",
	ninelives.ClassOverloaded:    "overloaded",
	ninelives.ClassTimeout:       "did not answer in time",
	ninelives.ClassNetwork:       "could not be reached",
	ninelives.ClassModelNotFound: "has no such model",
	ninelives.ClassContextLength: "takes no request of this length",
	ninelives.ClassContentFilter: "refused the content",
	ninelives.ClassRefusal:       "declined to answer",
	ninelives.ClassFormat:        "did not take the request",
	ninelives.ClassStreamBroken:  "broke off",
	ninelives.ClassEmpty:         "answered nothing",
	ninelives.ClassTruncated:     "was cut at its limit of tokens",
	ninelives.ClassInvalidOutput: "missed the form that was asked for",
}

// attempts counts them, and says how long they took.
func (v failing) attempts() string {
	n := len(v.tried)
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("%d attempts%s.", n, v.after())
}

func (v failing) after() string {
	if v.took <= 0 {
		return ""
	}
	return " in " + spelled(v.took)
}

// backAt says when somebody may answer again.
func (v failing) backAt(words string, now time.Time) string {
	if v.back <= 0 {
		return ""
	}
	return fmt.Sprintf("%s %s (%s).", words, spelled(max(v.back, time.Second)), now.Add(v.back).UTC().Truncate(time.Second).Format(time.RFC3339))
}

// spelled writes a duration for a person.
func spelled(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// param is the field concerned, in the protocols that have a word for it.
func (v failing) param(p ninelives.Protocol) string {
	switch {
	case v.refused != nil:
		return v.refused.Param
	case v.trouble == troubleTooLong && p == ninelives.OpenAIChat:
		return "messages"
	case v.trouble == troubleTooLong && p == ninelives.OpenAIResponses:
		return "input"
	case v.trouble == troubleNoModel:
		return "model"
	}
	return ""
}

// trail is what was tried, for machines.
func (v failing) trail() []wire.Tried {
	var trail []wire.Tried
	for _, t := range v.tried {
		trail = append(trail, wire.Tried{Candidate: shownName(t.Candidate), Class: t.Class, Status: t.Status, Took: t.Took})
	}
	return trail
}

// shownName is the name of a candidate as it may be shown.
func shownName(s string) string { return clipped(visible.EscapedLine(s), maxName) }

func clipped(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

func sentences(parts ...string) string {
	var said []string
	for _, s := range parts {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, " ")
}

func sentenceOf(word, rest string) string {
	if rest == "" {
		return ""
	}
	return word + " " + rest + "."
}

var (
	addressRE = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[\w.+-]+@[\w-]+\.[\w.-]+`)
	uuidRE    = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	runRE     = regexp.MustCompile(`[A-Za-z0-9+/=]{16,}`)
)

// safeReason is what may be passed on of a provider's words about the client's
// own request: on one line, without what steers a terminal, and without what
// may be somebody's key or address. A run of 16 letters and digits is taken for
// a key; names of models, fields and betas have dashes, dots and underscores
// in between.
func safeReason(s string) string {
	s = visible.Line(wire.Redact(s))
	s = addressRE.ReplaceAllString(s, "[address]")
	s = uuidRE.ReplaceAllString(s, "[redacted]")
	s = runRE.ReplaceAllStringFunc(s, func(run string) string {
		if strings.ContainsFunc(run, unicode.IsDigit) && strings.ContainsFunc(run, unicode.IsLetter) {
			return "[redacted]"
		}
		return run
	})
	return clipped(s, maxReason)
}
