package wire

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// complaint is what an error body says, whatever its shape. Shapes seen:
// {"error":{…}}, {"type":"error","error":{…}}, flat objects, arrays of
// envelopes, {"error":"text"}, {"code":"text","error":"text"},
// {"detail":[…]} and {"message":{"detail":[…]}} (validators), {"message":…}
// with the type in a header (AWS), {"base_resp":{…}}, an upstream's body as
// JSON in a string, several levels deep, HTML, XML, plain text, nothing.
type complaint struct {
	// texts are the sentences, outermost first, with quotes and spaces made alike.
	texts []string
	// all is texts in one, in plain words for the phrases; lower is the same in
	// lower case.
	all, lower string
	// words are codes, types, reasons and the like, squeezed to lower-case
	// letters and digits.
	words []string
	// code and kind are the first code and type as written.
	code, kind string
	// param is the request parameter that is named as the culprit.
	param string
	// told is an HTTP status inside the body; 0 if none.
	told int
	// numbers are vendors' own numeric codes by their place in the body.
	glm, minimax string
	// via is the upstream that a router names.
	via string
	id  string

	quotaIDs   []string
	headers    http.Header // a router passes on its upstream's header
	retryDelay string
	delaySecs  float64 // waits told as a number of seconds
	resetsAt   any     // RFC 3339 text or epoch
	window     int
	requested  int

	flagged   bool // a moderation report is attached
	html      bool
	challenge bool // a bot check stands in the way
	empty     bool
}

const (
	maxComplaint = 6 << 10 // bytes of sentences that are looked at
	maxDepth     = 16      // levels of envelopes and of JSON in strings
)

var (
	titleRE   = exact(`(?is)<title[^>]*>(.*?)</title>`)
	headingRE = exact(`(?is)<h1[^>]*>(.*?)</h1>`)
	tagRE     = exact(`(?s)<[^>]*>`)
	xmlRE     = exact(`(?is)<(code|message)>([^<]*)</`)
	reqIDRE   = exact(`\breq_[A-Za-z0-9]{6,}\b`)
	suffixRE  = exact(`\(([12]\d{3})\)`)
	sizeRE    = texts(`(length|limit|maximum|max|size|tokens?|of|is|to)\s*\(\d+\)`)
	prefixRE  = exact(`^\s*\[(1\d{3})\]`)
)

func readComplaint(a Answer) *complaint {
	c := &complaint{}
	body := bytes.TrimSpace(bytes.TrimPrefix(a.Body, []byte("\ufeff")))
	if t := a.Header.Get("X-Amzn-Errortype"); t != "" {
		t, _, _ = strings.Cut(t, ":")
		c.addKind(t)
	}
	if a.Type != "" {
		c.addKind(a.Type)
	}
	if strings.EqualFold(a.Header.Get("Cf-Mitigated"), "challenge") {
		c.challenge = true
	}
	body = unframed(body)
	switch {
	case len(body) == 0:
		c.empty = true
	case body[0] == '<':
		c.markup(body)
	case body[0] == '{' || body[0] == '[' || body[0] == '"':
		if v, ok := firstJSON(body); ok {
			c.value(v, 0)
		} else {
			c.text(string(body), maxDepth)
		}
	default:
		c.text(string(body), 0)
	}
	c.all = inPlainWords(ends(strings.Join(c.texts, "\n")))
	c.quoted()
	c.lower = strings.ToLower(c.all)
	if c.id == "" {
		if m := reqIDRE.find(c.all); m != nil {
			c.id = m[0]
		}
	}
	return c
}

var (
	quotedRE     = texts(`'(?:code|type|status|reason)': ?'([\w.-]{3,60})'`)
	quotedCodeRE = texts(`\berror code:? ([45]\d\d)\b`)
)

// quoted takes codes out of a body that stands in a sentence as some language
// prints it, or cut off, and is no JSON any more.
func (c *complaint) quoted() {
	for _, m := range quotedRE.findAll(c.all, 8) {
		c.addWord(m[1])
	}
	if m := quotedCodeRE.find(c.all); m != nil && c.told == 0 {
		c.told = atoi(m[1])
	}
}

// unframed takes the data out of a body that is a server-sent event although
// the answer is no stream.
func unframed(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("data:")) && !bytes.HasPrefix(body, []byte("event:")) && !bytes.HasPrefix(body, []byte("error:")) {
		return body
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimSpace(line)
		for _, field := range []string{"data:", "error:"} {
			if rest, ok := bytes.CutPrefix(line, []byte(field)); ok {
				return bytes.TrimSpace(rest)
			}
		}
	}
	return body
}

// firstJSON decodes the first JSON value of b.
func firstJSON(b []byte) (any, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	raw, err := dec.ReadValue()
	if err != nil {
		spaced := bytes.Map(unbroken, b)
		if bytes.Equal(spaced, b) {
			return nil, false
		}
		return firstJSON(spaced)
	}
	var v any
	err = json.Unmarshal(raw, &v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return v, err == nil
}

// unbroken makes spaces of the line breaks and tabs that stand bare in the
// strings of hand-made JSON.
func unbroken(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

func (c *complaint) value(v any, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case string:
		c.text(v, depth)
	case []any:
		for i, e := range v {
			if i == 64 {
				break
			}
			c.value(e, depth+1)
		}
	case map[string]any:
		c.object(v, depth)
	}
}

// object reads the members that error envelopes are made of, and no others:
// what a body echoes of the request must not be taken for the complaint.
func (c *complaint) object(o map[string]any, depth int) {
	for _, key := range []string{"code", "error_code", "errorCode", "err_code", "status_code", "statusCode", "http_status", "originalStatusCode"} {
		if key == "status_code" && o["status_msg"] != nil {
			continue // base_resp, below
		}
		c.addCode(o[key], key == "originalStatusCode")
	}
	for _, key := range []string{"type", "error_type", "errorType", "__type", "reason", "limit_source", "name"} {
		if s, ok := o[key].(string); ok && s != "error" {
			c.addKind(s)
		}
	}
	switch s := o["status"].(type) {
	case string:
		c.addKind(s)
	case float64:
		c.addCode(s, false)
	}
	for _, key := range []string{"param", "field"} {
		if s, ok := o[key].(string); ok && c.param == "" {
			c.param = s
		}
	}
	if loc, ok := o["loc"].([]any); ok {
		c.located(loc, o)
		return
	}
	c.baseResp(o)
	if s, ok := o["provider_name"].(string); ok && s != "" {
		c.via = s
	}
	for _, key := range []string{"request_id", "requestId", "requestID"} {
		if s, ok := o[key].(string); ok && c.id == "" {
			c.id = s
		}
	}
	if s, ok := o["quotaId"].(string); ok {
		c.quotaIDs = append(c.quotaIDs, s)
	}
	if _, ok := o["flagged_input"]; ok {
		c.flagged = true
	}
	c.waits(o)
	if h, ok := o["headers"].(map[string]any); ok {
		c.headers = http.Header{}
		for k, v := range h {
			c.headers.Set(k, scalar(v))
		}
	}
	c.number(&c.window, o["n_ctx"])
	c.number(&c.requested, o["n_prompt_tokens"])
	for _, key := range []string{
		"message", "msg", "errorMessage", "error_message", "error_msg", "err_msg", "description", "title", "error",
		"error_description", "errors", "detail", "details", "innererror", "inner_error", "cause", "metadata",
		"raw", "body", "violations", "fieldViolations",
	} {
		if v, ok := o[key]; ok {
			c.value(v, depth+1)
		}
	}
	if r, ok := o["response"].(map[string]any); ok {
		c.value(r["error"], depth+1)
	}
}

// located reads one finding of a validator: where, and what is wrong there.
func (c *complaint) located(loc []any, o map[string]any) {
	var path []string
	for i, e := range loc {
		if s := scalar(e); s != "" && !(i == 0 && s == "body") {
			path = append(path, s)
		}
	}
	msg, _ := o["msg"].(string)
	if t, ok := o["type"].(string); ok && t == "extra_forbidden" {
		msg = "Extra inputs are not permitted"
	}
	c.text(strings.Join(path, ".")+": "+msg, maxDepth)
}

// baseResp reads MiniMax's own envelope.
func (c *complaint) baseResp(o map[string]any) {
	r, ok := o["base_resp"].(map[string]any)
	if !ok {
		r = o
	}
	msg, ok := r["status_msg"].(string)
	if !ok {
		return
	}
	if code := scalar(r["status_code"]); code != "" && code != "0" {
		c.minimax = code
		if c.code == "" {
			c.code = code
		}
		c.text(msg, maxDepth)
	}
}

func (c *complaint) waits(o map[string]any) {
	if s, ok := o["retryDelay"].(string); ok {
		c.retryDelay = s
	} else if d, ok := o["retryDelay"].(map[string]any); ok {
		c.retryDelay = scalar(d["seconds"]) + "s"
	}
	for _, key := range []string{"estimated_time", "retry_after", "retry_after_seconds", "retryAfter", "resets_in_seconds"} {
		if n, err := strconv.ParseFloat(scalar(o[key]), 64); err == nil && n > c.delaySecs {
			c.delaySecs = n
		}
	}
	for _, key := range []string{"resets_at", "reset_at", "resetsAt", "reset_time"} {
		if v, ok := o[key]; ok && v != nil {
			c.resetsAt = v
		}
	}
}

func (c *complaint) number(to *int, v any) {
	if n, ok := v.(float64); ok && n > 0 && n < 1e12 && *to == 0 {
		*to = int(n)
	}
}

// addCode takes a code: a word, a status, or a vendor's own number.
func (c *complaint) addCode(v any, upstream bool) {
	s := scalar(v)
	if s == "" {
		return
	}
	if n, err := strconv.Atoi(s); err == nil {
		switch {
		case n >= 400 && n < 600:
			if c.told == 0 && !upstream {
				c.told = n
			}
		case n >= 1000:
			if c.glm == "" {
				c.glm = s
			}
		}
	}
	if c.code == "" && !upstream {
		c.code = s
	}
	if strings.Contains(s, " ") {
		c.text(s, maxDepth)
		return
	}
	c.addWord(s)
}

func (c *complaint) addKind(s string) {
	if s == "" || strings.HasPrefix(s, "type.googleapis.com") {
		return
	}
	if c.kind == "" {
		c.kind = s
	}
	c.addWord(s)
}

func (c *complaint) addWord(s string) {
	if w := squeeze(s); w != "" && len(c.words) < 64 {
		c.words = append(c.words, w)
	}
}

// text takes a sentence; where it holds JSON, that is read as a body of its own.
func (c *complaint) text(s string, depth int) {
	s = strings.ToValidUTF8(s, "\ufffd")
	if depth < maxDepth {
		i := strings.IndexByte(s, '{')
		if j := strings.IndexByte(s, '['); j >= 0 && j == i-1 {
			i = j
		}
		if i >= 0 {
			if v, ok := firstJSON([]byte(s[i:])); ok && envelope(v) {
				c.sentence(s[:i])
				c.value(v, depth+1)
				return
			}
		}
	}
	c.sentence(s)
}

// envelope tells an error body from JSON that a sentence merely quotes.
func envelope(v any) bool {
	if l, ok := v.([]any); ok {
		return len(l) > 0 && envelope(l[0])
	}
	o, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, key := range []string{"error", "errors", "message", "msg", "detail", "status_msg", "base_resp"} {
		if _, ok := o[key]; ok {
			return true
		}
	}
	return false
}

func (c *complaint) sentence(s string) {
	s = level(ends(s))
	if s == "" || len(c.texts) == 64 {
		return
	}
	for _, t := range c.texts {
		if t == s {
			return
		}
	}
	c.texts = append(c.texts, s)
	if m := suffixRE.find(s); m != nil && c.minimax == "" && !sizeRE.matches(s) {
		c.minimax = m[1]
	}
	if m := prefixRE.find(s); m != nil && c.glm == "" {
		c.glm = m[1]
	}
}

func (c *complaint) markup(body []byte) {
	body = clip(body, 256<<10)
	page := string(body)
	if ms := xmlRE.findAll(page, 4); ms != nil && !strings.Contains(strings.ToLower(page), "<html") {
		for _, m := range ms {
			if strings.EqualFold(m[1], "code") {
				c.addCode(m[2], false)
			} else {
				c.text(m[2], maxDepth)
			}
		}
		return
	}
	c.html = true
	for _, p := range []*phrase{titleRE, headingRE} {
		if m := p.find(page); m != nil {
			c.sentence(tagRE.replace(string(clip([]byte(m[1]), 400)), " "))
		}
	}
	if strings.Contains(page, "Just a moment") || strings.Contains(page, "challenge-platform") {
		c.challenge = true
	}
}

// message is what the fault says: the innermost sentences, in one line.
func (c *complaint) message(a Answer) string {
	var parts []string
	for _, t := range c.texts {
		if len(parts) > 0 && len(c.texts) > 1 && genericRE.matches(parts[0]) {
			parts = parts[:0]
		}
		parts = append(parts, strings.ReplaceAll(t, "\n", " "))
	}
	s := strings.Join(parts, "; ")
	switch {
	case c.html && s != "":
		s = "a web page instead of an answer: " + s
	case c.html:
		s = "a web page instead of an answer"
	case s == "" && c.code != "":
		s = c.code
	case s == "" && c.kind != "":
		s = c.kind
	case s == "":
		s = http.StatusText(a.Status)
		if s == "" || c.empty {
			s = fmt.Sprintf("an empty answer (HTTP %d)", a.Status)
		}
	}
	if c.via != "" {
		s = c.via + ": " + s
	}
	return Redact(s)
}

var genericRE = texts(`^(error from \w+: )*(the )?(provider|upstream)( has)? returned (an )?error\b[^:]{0,20}$`)

// squeeze makes a code comparable: lower-case letters and digits only.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, string(clip([]byte(s), 200)))
}

var leveller = strings.NewReplacer(
	"`", "'", `"`, "'", "‘", "'", "’", "'", "“", "'", "”", "'", "「", "'", "」", "'", "«", "'", "»", "'",
	`\'`, "'",
)

var (
	notRE    = texts(`\b(is|are|was|were|do|does|did|has|have|could|would|should|must)n't\b`)
	cannotRE = texts(`\bcan ?not\b|\bcan't\b`)
)

// level makes quotes, spaces and contractions alike, so that patterns need to
// know only one form of them.
func level(s string) string {
	s = leveller.Replace(s)
	s = strings.Join(strings.Fields(s), " ")
	return cannotRE.replace(notRE.replace(s, "$1 not"), "cannot")
}

var (
	oughtRE    = texts(`\b(has|have|had|needs?|ought) to (be|have|match|contain|start|begin|end|follow|come|alternate)\b`)
	cannotDoRE = texts(`\b(cannot|is (?:unable|not able) to|are (?:unable|not able) to|do not|did not) (support|accept|allow|handle|process)\b`)
	maxRE      = texts(`\bmax\b`)
)

// inPlainWords puts what can be said in several words into the one form that the
// phrases know. It is for them alone: nobody reads it.
func inPlainWords(s string) string {
	s = oughtRE.replace(s, "must $2")
	s = cannotDoRE.replace(s, "does not $2")
	return maxRE.replace(s, "maximum")
}

// ends keeps the beginning and the end of a text: a trace or a template in
// between pushes what matters to either.
func ends(s string) string {
	if len(s) <= maxComplaint {
		return s
	}
	tail := len(s) - maxComplaint/3
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return string(clip([]byte(s), maxComplaint-maxComplaint/3)) + " … " + s[tail:]
}

func clip(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// scalar writes a JSON scalar as text; other values are empty.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// requestID finds the provider's id of the request.
func requestID(h http.Header, c *complaint) string {
	for _, key := range []string{
		"Request-Id", "X-Request-Id", "X-Amzn-Requestid", "Apim-Request-Id", "X-Ms-Request-Id",
		"X-Dashscope-Request-Id", "X-Goog-Request-Id", "X-Generation-Id", "X-Ds-Trace-Id", "Mistral-Correlation-Id", "Cf-Ray",
	} {
		if s := h.Get(key); s != "" && !(key == "Cf-Ray" && c.id != "") {
			return bounded(s, 120)
		}
	}
	return bounded(c.id, 120)
}
