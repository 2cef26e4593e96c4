package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ninelives-ai/ninelives/internal/wire"
)

// A verdict must rest on what a provider means, not on how one day's answer of
// one of them happened to be spelt. The mutator changes what carries no
// meaning (ids, names, models, links, numbers of no account, the order of
// members, fields that nobody knows, courtesy, synonyms, quotes, case, spaces
// and stops) and no verdict may change.

// TestWireFaultsMutated serves mutations of every case for real.
// NINELIVES_MUTATIONS sets how many; the default is 4.
func TestWireFaultsMutated(t *testing.T) {
	n := 4
	if s := os.Getenv("NINELIVES_MUTATIONS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for _, c := range allFaults(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			for seed := range n {
				mode := []string{oneWrite, ownPieces, eachByte}[seed%3]
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					m := mutate(c, uint64(seed))
					replay(t, m, mode)
					if t.Failed() {
						t.Logf("mutated: %s\n%v", m.payload(), m.Headers)
					}
				})
			}
		})
	}
}

// TestComplaintsMutated tries many more mutations of the error answers, on the
// classifier alone: class, hint and repairs stay.
func TestComplaintsMutated(t *testing.T) {
	for _, c := range allFaults(t) {
		if c.Status < 400 || c.SSE != nil {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			now := time.Now()
			classify := func(c fault) (string, time.Duration, string) {
				r := served(c, oneWrite)
				h := make(map[string][]string)
				for k, v := range r.header {
					h[textprotoKey(k)] = []string{v}
				}
				f := wire.Classify(wire.Answer{Status: r.status, Header: h, Body: r.body, Now: now})
				var repairs []string
				for _, r := range f.Repairs {
					repairs = append(repairs, r.String())
				}
				return string(f.Class), f.RetryAfter.Round(time.Second), strings.Join(repairs, "; ")
			}
			class, hint, repairs := classify(c)
			for seed := range 60 {
				m := mutate(c, uint64(seed))
				if cl, h, r := classify(m); cl != class || (h-hint).Abs() > 2*time.Second || r != repairs {
					t.Fatalf("mutation %d: %s %v [%s], want %s %v [%s]\n%s\n%v", seed, cl, h, r, class, hint, repairs, m.payload(), m.Headers)
				}
			}
		})
	}
}

func textprotoKey(k string) string {
	words := strings.Split(strings.ToLower(k), "-")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "-")
}

// mutator changes one case.
type mutator struct {
	*rand.Rand
	c     fault
	names map[string]string
	scale int // what the numbers of an overflow are multiplied by
}

func mutate(c fault, seed uint64) fault {
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, mix(c.ID))), c: c.clone(), names: map[string]string{}}
	if c.Expect.Class == "context_length" && !strings.HasPrefix(c.SecondRequest, "max_tokens") {
		m.scale = 1 + m.IntN(3)
	}
	// Names first, everywhere alike, then the bodies.
	m.c.Body = m.rename(m.c.Body)
	if m.c.SSE != nil {
		s := m.rename(*m.c.SSE)
		m.c.SSE = &s
	}
	m.c.Request = json.RawMessage(m.rename(string(m.c.Request)))
	m.c.Healed = json.RawMessage(m.rename(string(m.c.Healed)))
	if m.c.Expect.ToolCalls != nil {
		calls := slices.Clone(*m.c.Expect.ToolCalls)
		for i := range calls {
			calls[i].ID = m.rename(calls[i].ID)
		}
		m.c.Expect.ToolCalls = &calls
	}
	if m.c.SSE != nil {
		s := m.stream(*m.c.SSE)
		m.c.SSE = &s
	} else {
		m.c.Body = m.body(m.c.Body)
	}
	m.headers()
	return m.c
}

// mix gives each case changes of its own.
func mix(id string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, id)
	return h.Sum64()
}

var (
	idRE      = regexp.MustCompile(`\b(call|toolu|chatcmpl|msg|gen|req|user|org|ak|resp|project|proj)([_-][A-Za-z0-9]*(?:[0-9]|[A-Z]{2})[A-Za-z0-9_-]*)`)
	modelRE   = regexp.MustCompile(`\btest-model\b|\bclaude-test\b|\b(?:meta-llama/|openai/|z-ai/|test/)?(?:gpt|claude|llama|Llama|gemini|glm|deepseek|qwen|kimi|mistral|mixtral|grok)-[\w.]*[\w](?:-[\w.]*\w)*`)
	urlRE     = regexp.MustCompile(`https?://[^\s"\\')<>]+[^\s"\\')<>.,]`)
	createdRE = regexp.MustCompile(`("created":\s*)\d+`)
	placeRE   = regexp.MustCompile(`\b((?:line|column|index|messages\[|position) ?)\d+`)
	usedRE    = regexp.MustCompile(`\b(Used:? )\d+`)
	bigRE     = regexp.MustCompile(`\b\d{4,}\b`)
)

const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// rename gives ids, models and links other names, the same one each time.
func (m *mutator) rename(s string) string {
	once := func(old string, fresh func() string) string {
		if name, ok := m.names[old]; ok {
			return name
		}
		m.names[old] = fresh()
		return m.names[old]
	}
	other := func(fresh func() string) func() string { // two ids stay two
		return func() string {
			for {
				if name := fresh(); !slices.Contains(slices.Collect(maps.Values(m.names)), name) {
					return name
				}
			}
		}
	}
	s = urlRE.ReplaceAllStringFunc(s, func(u string) string {
		if strings.Contains(u, "/com.amazon.") {
			return u
		}
		return once(u, func() string { return "https://help.example.test/" + m.word(5) })
	})
	s = idRE.ReplaceAllStringFunc(s, func(id string) string {
		return once(id, other(func() string {
			p := idRE.FindStringSubmatch(id)
			return p[1] + p[2][:1] + m.word(len(p[2])-2) + "7"
		}))
	})
	return modelRE.ReplaceAllStringFunc(s, func(model string) string {
		return once(model, func() string {
			return m.pick("gpt-9-nano", "nova-2.5-pro", "llama-4-70b", "acme/large-3", "kat-8x7b-instruct")
		})
	})
}

func (m *mutator) word(n int) string {
	b := make([]byte, max(n, 1))
	for i := range b {
		b[i] = letters[m.IntN(len(letters))]
	}
	return string(b)
}

func (m *mutator) pick(s ...string) string { return s[m.IntN(len(s))] }

func (m *mutator) one(in int) bool { return m.IntN(in) == 0 }

func (m *mutator) headers() {
	h := map[string]string{}
	for k, v := range m.c.Headers {
		switch m.IntN(3) {
		case 0:
			k = strings.ToUpper(k)
		case 1:
			k = textprotoKey(k)
		}
		h[k] = m.rename(v)
	}
	h["X-"+m.word(6)] = m.word(12)
	m.c.Headers = h
}

// stream mutates the frames of a stream that are whole JSON objects.
func (m *mutator) stream(s string) string {
	var out strings.Builder
	lines := regexp.MustCompile(`[^\r\n]*(?:\r\n|\n|\r|$)`).FindAllString(s, -1)
	for i, line := range lines {
		text := strings.TrimRight(line, "\r\n")
		end := line[len(text):]
		data, ok := strings.CutPrefix(text, "data:")
		trimmed := strings.TrimLeft(data, " ")
		continued := i > 0 && strings.HasPrefix(lines[i-1], "data:") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "data:")
		if ok && !continued && strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) {
			text = "data:" + data[:len(data)-len(trimmed)] + m.body(trimmed)
		}
		out.WriteString(text + end)
	}
	return out.String()
}

// body mutates a JSON document; anything else is left as it is, but for its names.
func (m *mutator) body(s string) string {
	trimmed := strings.TrimSpace(s)
	switch {
	case trimmed == "":
		return s
	case trimmed[0] == '<':
		return m.page(s)
	case trimmed[0] != '{' && trimmed[0] != '[':
		if m.c.Status >= 400 {
			return m.sentence(s)
		}
		return s
	}
	dec := json.NewDecoder(strings.NewReader(createdRE.ReplaceAllStringFunc(trimmed, func(c string) string {
		return createdRE.ReplaceAllString(c, "${1}"+strconv.Itoa(1_500_000_000+m.IntN(300_000_000)))
	})))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return s
	}
	var out bytes.Buffer
	m.write(&out, "", v, failing(v, m.c.Status), false)
	if strings.HasSuffix(s, "\n") {
		out.WriteByte('\n')
	}
	return out.String()
}

// page changes a page of HTML where nobody looks.
func (m *mutator) page(s string) string {
	s = strings.Replace(s, "<body>", "<body class=\""+m.word(4)+"\">\n<!-- "+m.word(9)+" -->", 1)
	if m.one(2) {
		s = strings.NewReplacer("<title>", "<TITLE>", "</title>", "</TITLE>", "<h1>", "<H1 id=x>", "</h1>", "</H1>").Replace(s)
	}
	return strings.ReplaceAll(s, "api.openai.com", m.pick("llm.example.test", "api.host-nine.test"))
}

// failing tells a document that reports an error from one that is an answer.
func failing(v any, status int) bool {
	if status >= 400 {
		return true
	}
	o, ok := v.(object)
	return ok && (o["error"] != nil || o["type"] == "error")
}

// write writes a document with its members in another order, and members that
// nobody knows. quiet leaves a subtree as it is: its value is content.
func (m *mutator) write(out *bytes.Buffer, key string, v any, failed, quiet bool) {
	switch v := v.(type) {
	case object:
		keys := make([]string, 0, len(v)+1)
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys) // a map has no order of its own, a seed must
		m.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		extra := ""
		if !quiet && m.one(3) {
			extra = "x_" + m.word(5)
			keys = append(keys, extra)
		}
		out.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				out.WriteString(m.pick(",", ", "))
			}
			name, _ := json.Marshal(k)
			out.Write(name)
			out.WriteString(m.pick(":", ": "))
			if k == extra {
				out.WriteString(m.pick(`"`+m.word(4)+`"`, `null`, `{"n":1}`, `[true]`))
				continue
			}
			m.write(out, k, v[k], failed, quiet || k == "arguments" || k == "input" || k == "tool_calls" || k == "headers")
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			m.write(out, key, e, failed, quiet)
		}
		out.WriteByte(']')
	case string:
		switch {
		case quiet || !failed:
		case key == "provider_name" || key == "provider":
			v = m.pick("Acme", "Host Nine", "FastGPU")
		case key == "raw" && strings.HasPrefix(strings.TrimSpace(v), "{"):
			v = m.body(v)
		case slices.Contains([]string{"message", "msg", "raw", "error", "detail", "title"}, key):
			v = m.sentence(v)
		}
		text, _ := json.Marshal(v)
		out.Write(text)
	default:
		text, _ := json.Marshal(v)
		out.Write(text)
	}
}

// synonyms are words that a writer may choose freely. Where a list begins with
// a phrase, any of the others may stand for it.
var synonyms = [][]string{
	{"Please", "Kindly", "Do"}, {"please", "kindly"},
	{"try again", "retry"}, {"retry after", "try again after", "retry in"},
	{"is not supported", "isn't supported", "is unsupported", "is not available"},
	{"does not support", "doesn't support", "cannot support"},
	{"does not exist", "doesn't exist", "was not found"},
	{"do not", "don't"}, {"cannot", "can't", "can not"},
	{"Unrecognized", "Unknown", "Unsupported"},
	{"request argument", "parameter", "field"},
	{"supplied", "provided"},
	{"maximum", "max"},
	{"currently", "presently", "right now"},
	{"temporarily", "momentarily"},
	{"exceeds", "exceeded", "is exceeding"},
	{"is too low", "is low", "too low"},
	{"reached its", "hit its"},
	{"insufficient balance", "not enough balance", "insufficient funds"},
	{"is depleted", "has been used up", "is exhausted"},
	{"busy", "overloaded"},
	{"must be", "has to be", "needs to be"},
	{"is missing", "was missing"},
	{"Missing", "No"},
	{"was rejected because", "has been rejected since"},
	{"flagged by", "blocked by"},
	{"does not match", "doesn't match", "must match the"},
	{"Unexpected role", "Role not expected:"},
	{"successive", "consecutive"},
	{"too quickly", "too fast"},
	{"Too many requests", "Too many calls", "too many requests were made"},
	{"Request too large", "This request is too large"},
	{"Rate limit reached", "Rate limit hit", "Rate limit exceeded"},
	{"timed out", "has timed out"},
	{"unavailable", "not available"},
	{"Incorrect API key", "Wrong API key", "Invalid API key"},
	{"Invalid", "The request has an invalid"},
	{"prompt is too long", "your prompt is too long", "prompt too long"},
	{"in your input", "of your input"},
	{"is unavailable now", "isn't available now", "is currently unavailable"},
	{"Only the default", "Just the default"},
	{"must be non-empty", "must not be empty", "cannot be empty"},
	{"cannot end with", "must not end with", "may not end with"},
	{"cannot be modified", "must not be modified", "may not be changed", "can't be altered"},
	{"must be passed back", "has to be passed back", "needs to be sent back", "must be returned"},
	{"interleave", "alternate"},
	{"roles must alternate", "roles should alternate"},
	{"Failed to deserialize", "Could not deserialize", "Cannot parse"},
	{"expected one of", "expecting one of", "must be one of"},
	{"unknown variant", "unrecognized variant", "invalid variant"},
	{"were found without", "have been found without", "have no"},
	{"must have a corresponding", "needs a corresponding", "must have a matching"},
	{"Extra inputs are not permitted", "Extra inputs are not allowed", "Extra fields are not permitted", "Additional inputs are forbidden"},
	{"cannot unmarshal", "can't unmarshal", "unable to unmarshal"},
	{"high risk", "high-risk"},
	{"considered", "deemed", "judged"},
	{"longer than", "larger than", "greater than"},
	{"Input is too long", "The input is too long", "Prompt is too long"},
	{"is currently loading", "is still loading", "is loading"},
	{"Overloaded", "Over capacity", "The service is overloaded"},
	{"No endpoints found", "No endpoints available"},
	{"capacity exceeded", "capacity is exceeded", "capacity reached"},
	{"An unexpected error occurred", "Something went wrong", "Internal error"},
	{"requires more credits", "needs more credits"},
	{"can only afford", "could only afford", "can afford only"},
	{"You exceeded", "You have exceeded", "You've exceeded"},
	{"string does not match pattern", "the string doesn't match the pattern"},
	{"is required to be supplied", "must be supplied", "is required"},
	{"exceed context limit", "exceed the context limit", "are above the context limit"},
	{"the valid range of max_tokens is", "max_tokens must be in the range", "the allowed range is"},
	{"too large for model", "too large for a model", "too big for model"},
}

// sentence says the same in other words.
func (m *mutator) sentence(s string) string {
	for _, words := range synonyms {
		if i := strings.Index(s, words[0]); i >= 0 && m.one(2) {
			s = s[:i] + m.pick(words...) + s[i+len(words[0]):]
		}
	}
	s = placeRE.ReplaceAllStringFunc(s, func(p string) string {
		return placeRE.ReplaceAllString(p, "${1}"+strconv.Itoa(m.IntN(90)))
	})
	s = usedRE.ReplaceAllString(s, "${1}"+strconv.Itoa(m.IntN(1000)))
	if m.scale > 1 {
		s = bigRE.ReplaceAllStringFunc(s, func(n string) string {
			i, err := strconv.Atoi(n)
			if err != nil {
				return n
			}
			return strconv.Itoa(i * m.scale)
		})
	}
	s = m.letterCase(s)
	s = m.quotes(s)
	s = m.spacing(s)
	if m.one(3) {
		s = m.pick("Sorry, ", "Error: ", "Oops! ", "We could not process this. ", "[upstream] ") + s
	}
	if m.one(3) {
		s += m.pick(" Thank you.", " See the documentation.", " (trace 7f3a)", " Sorry for the trouble!")
	}
	return s
}

// quotes sets names in other quotes.
func (m *mutator) quotes(s string) string {
	if !m.one(2) {
		return s
	}
	marks := [][2]string{{"'", "'"}, {"`", "`"}, {`"`, `"`}, {"“", "”"}, {"‘", "’"}, {"", ""}}
	to := marks[m.IntN(len(marks))]
	return quoted.ReplaceAllString(s, to[0]+"$1"+to[1])
}

var quoted = regexp.MustCompile("['`]([\\w.\\[\\]]+)['`]")

var plainWord = regexp.MustCompile(`^(?:[A-Z]?[a-z]+|[A-Z]{2,})[.,!:]?$`)

// letterCase changes the case of plain words; names of fields and the like are
// spelt one way only.
func (m *mutator) letterCase(s string) string {
	change := strings.ToLower
	switch m.IntN(4) {
	case 0:
		change = strings.ToUpper
	case 1:
	default:
		return s
	}
	fields := strings.Split(s, " ")
	for i, w := range fields {
		if plainWord.MatchString(w) && !m.one(3) {
			fields[i] = change(w)
		}
	}
	return strings.Join(fields, " ")
}

func (m *mutator) spacing(s string) string {
	if m.one(3) {
		s = strings.ReplaceAll(s, " ", m.pick("  ", " \t"))
	}
	if m.one(4) {
		s = strings.Replace(s, ". ", m.pick(".\n", ".  ", "! "), 1)
	}
	if m.one(3) {
		s = strings.TrimSuffix(s, ".")
	}
	return s
}

func TestMutationsChangeTheBytesAndRepeatThemselves(t *testing.T) {
	changed := 0
	cases := allFaults(t)
	for _, c := range cases {
		a, b := mutate(c, 1), mutate(c, 1)
		if a.payload() != b.payload() || string(a.Request) != string(b.Request) {
			t.Errorf("%s: the same seed gives two mutations", c.ID)
		}
		if a.payload() != c.payload() {
			changed++
		}
	}
	if changed < len(cases)*3/4 {
		t.Errorf("only %d of %d cases are changed", changed, len(cases))
	}
}
