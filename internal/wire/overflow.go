package wire

import (
	"net/http"
	"strconv"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// A context overflow is told in many wordings. They come down to three: a
// window is exceeded, a prompt is too long, a request is too large. What also
// speaks of tokens and limits but is none of them is excluded first.
var (
	// tooLongTexts speak of the prompt or the window.
	tooLongTexts = texts(
		`(context|sequence)[ _-]?(length|window|size|limit)[^;\n]{0,80}(exceed|too (long|large|big|small)|longer|greater|larger|overflow|beyond|surpass|reduce|not enough|insufficient|only)`,
		`(exceed\w*|longer than|greater than|larger than|beyond|over|above|overflow\w*|surpass\w*|outside|does not fit|not fit)[^;\n]{0,80}(context|sequence)[ _-]?(length|window|size|limit)?\b`,
		`maximum context[ _-]?(length|window|size)|max_model_len|model token limit|token limit exceeded|context overflow`,
		`(prompt|input|inputs|messages?|conversation|history|query|tokens?)\b[^;\n]{0,60}(is |are |was )?(too (long|large|big)|longer than|exceed\w* (the |this |its |our )?\w*'?s? ?(max|context|limit|allowed|token|model|window|available))`,
		`(maximum|max) (allowed )?(prompt|input)[ _-]?(token )?(length|size|tokens?|count)|range of input length|input length[^;\n]{0,40}(exceed|should be|must be)`,
		`too many (input |total |prompt )?tokens|reduce the length of (the |your )?(messages|prompt|input|conversation)|shorten (the |your )(prompt|input|messages)`,
		`prompt token count[^;\n]{0,40}exceed|token count[^;\n]{0,40}exceed|total (number of )?tokens[^;\n]{0,40}exceed|must have less than \d+ tokens|'?inputs'? tokens \+ |token count[^;\n]{0,40}only (supports?|allows?|accepts?) |\bn_ctx\b`,
		`no user query found in messages|content length[^;\n]{0,40}exceed|exceed\w*[^;\n]{0,40}content length|string too long[^;\n]{0,60}maximum length \d{5,}`,
		`(prompt|输入|上下文|内容)[^;\n]{0,12}(超长|过长|超过|超出)|超(过|出)[^;\n]{0,20}(上下文|最大长度|长度限制|窗口)`,
	)
	// tooLargeTexts speak of the whole request, whose size no wait changes.
	tooLargeTexts = texts(
		`(request|payload|body|entity|input|prompt)( is| was)? too large|(request|payload|body) (body |payload )?(size )?(is )?(exceed\w*|larger than)[^;\n]{0,30}(maximum|limit|size)|larger than the maximum (size|allowed)`,
	)
	// notTooLong: throttles and limits of the answer speak of tokens too.
	notTooLong = texts(
		`rate[ _-]?limit|too many tokens,? (please )?wait|(tokens?|requests?) per (second|minute|min|hour|day)|throttl|\bquota\b|\bTPM\b|\bRPM\b|\bTPD\b|\bcredits?\b`,
	)
	// outputTexts speak of the limit of the answer alone.
	outputTexts = texts(
		`max_(completion_|output_|new_)?tokens'?:? ?(value|must|should|is too|cannot|exceed|\d+ ?>)|range of max_(completion_|output_|new_)?tokens|(valid|allowed) range of max_`,
		`maximum (allowed )?(number of )?(output|completion) tokens|max(imum)? tokens you requested|at most \d+ (output|completion) tokens|maxoutputtokens`,
		`max_?tokens[^;\n]{0,40}(too (large|big|high)|less than or equal|at most|not exceed|<=)`,
	)
	// windowTexts say that it is the window after all, whatever stands beside.
	windowTexts = texts(`context[ _-]?(length|window|limit|size)|input length|input tokens|'?inputs'? tokens|prompt`)
)

// saysTooLong finds an overflow. A 429 is one only if the single request is
// larger than the limit, for then no wait helps.
func saysTooLong(a Answer, c *complaint, status int) (verdict, bool) {
	if !overflow(c, status) {
		return verdict{}, false
	}
	return verdict{class: ninelives.ClassContextLength, repairs: fits(c)}, true
}

func overflow(c *complaint, status int) bool {
	limited := status == http.StatusTooManyRequests || c.says(notTooLong)
	if c.says(tooLargeTexts) && !c.html && (limited || !c.says(imageTexts)) {
		return true
	}
	if limited {
		limit, requested := c.limitAndRequested()
		return limit > 0 && requested > limit
	}
	if c.word(contextWords) {
		return true
	}
	if c.html || !c.says(tooLongTexts) || c.says(mediaTexts) {
		return false
	}
	return !c.says(outputTexts) && !c.says(fieldTooLongTexts) || c.says(windowTexts)
}

// fieldTooLongTexts speak of a field that holds a name or an id, not of the
// prompt: by the field's name or by its small maximum.
var fieldTooLongTexts = texts(
	`(\b|_)(ids?|names?|descriptions?|stop sequences?)'?:?( string| value| length)?( is| are| was)? (too (long|large)|longer than|exceeds?\b)`,
	`string too long[^;\n]{0,60}maximum length \d{1,4}\b`,
)

// mediaTexts speak of one attachment, not of the prompt.
var mediaTexts = texts(`\b(image|picture|file|audio|video|attachment|pdf)s?\b[^.;\n]{0,30}(too (large|big|long)|exceeds?\b)`)

var imageTexts = texts(`\b(image|picture|audio|video|attachment)s?\b|\bfiles? (is|are|was|size|too|exceeds?|larger)\b`)

// numberRE are the wordings that carry numbers: which group is the window,
// which the size of the request.
var numberREs = []struct {
	re                *phrase
	window, requested int
}{
	{texts(`(\d+) \+ (\d+) > (\d+)`), 3, 1},
	{texts(`(\d+) tokens? > (\d+)`), 2, 1},
	{texts(`token count \(?(\d+)\)? exceeds[^;\n]{0,60}?\(?(\d+)\)?`), 2, 1},
	{texts(`token count (?:is|of) (\d+)[^;\n]{0,60}?only (?:supports?|allows?|accepts?)(?: up to| at most)? (\d+)`), 2, 1},
	{texts(`n_keep[^;\n0-9]{0,8}(\d+)[^;\n]{0,16}n_ctx[^;\n0-9]{0,8}(\d+)`), 2, 1},
	{texts(`context (?:length|window|size) (?:is|of)(?: only)? (\d+)[^;\n]{0,80}?(?:requested|contains?(?: at least)?|has|resulted in|received|given:?)(?: about| at least)? (\d+)`), 1, 2},
	{texts(`contains?(?: at least)? (\d+) tokens?[^;\n]{0,80}?(?:with|of|than|maximum|limit)[^;\n0-9]{0,30}(\d+)`), 2, 1},
	{texts(`maximum (?:prompt|input) length is (\d+)[^;\n]{0,60}?(?:contains|has|is|of) (\d+)`), 1, 2},
	{texts(`input length (?:of )?\(?(\d+)\)?[^;\n]{0,80}?(?:length|limit|window)(?: of)? \(?(\d+)\)?`), 2, 1},
	{texts(`\((\d+) tokens?\)[^;\n]{0,80}?\((\d+) tokens?\)`), 2, 1},
	{texts(`(?:count|length|size) of (\d+) exceeds (?:the )?(?:limit|maximum|window) of (\d+)`), 2, 1},
	{texts(`limit:? (\d+)[^;\n]{0,30}?requested:? (\d+)`), 1, 2},
	{texts(`cannot exceed (\d+)[^;\n]{0,30}?received (\d+)`), 1, 2},
	{texts(`less than (\d+) tokens?[^;\n]{0,20}?given:? (\d+)`), 1, 2},
	{texts(`<= (\d+)[.!]? given:? (\d+)`), 1, 2},
	{texts(`\((\d+) tokens?\) exceeds[^;\n]{0,60}?\((\d+)`), 2, 1},
	{texts(`context (?:length|window|size|limit)(?: is| of|:)?(?: only)? \(?(\d+)`), 1, 0},
	{texts(`(?:token limit|maximum (?:context|prompt|input)(?: length)?|max_model_len)\s*(?:is|of|:|=)?\s*\(?(\d+)`), 1, 0},
	{texts(`range of input length should be \[\d+, ?(\d+)\]`), 1, 0},
}

// overflowNumbers finds the window and the size of the request in tokens.
func overflowNumbers(c *complaint) (window, requested int) {
	window, requested = c.window, c.requested
	if window > 0 && requested > 0 {
		return window, requested
	}
	text := ungroup(c.all)
	for _, n := range numberREs {
		m := n.re.find(text)
		if m == nil {
			continue
		}
		if w := atoi(m[n.window]); window == 0 {
			window = w
		}
		if requested == 0 && n.requested > 0 {
			requested = atoi(m[n.requested])
		}
		if window > 0 {
			break
		}
	}
	return window, requested
}

func (c *complaint) limitAndRequested() (limit, requested int) {
	m := limitRE.find(ungroup(c.all))
	if m == nil {
		return 0, 0
	}
	return atoi(m[1]), atoi(m[2])
}

var limitRE = texts(`limit:? (\d+)[^;\n]{0,40}?requested:? (\d+)`)

// fits finds the answer limit under which the prompt does fit the window: the
// prompt is not too long, it is the reserve for the answer that is too large.
func fits(c *complaint) []ninelives.Repair {
	text := ungroup(c.all)
	for _, re := range roomREs {
		m := re.re.find(text)
		if m == nil {
			continue
		}
		window, prompt := atoi(m[re.window]), atoi(m[re.prompt])
		if room := window - prompt; prompt > 0 && room > 0 {
			return []ninelives.Repair{{Name: RepairClampMaxTokens, Value: strconv.Itoa(room), Once: true}}
		}
	}
	return nil
}

var roomREs = []struct {
	re             *phrase
	window, prompt int
}{
	{texts(`(\d+) \+ \d+ > (\d+)`), 2, 1},
	{texts(`\d+ > (\d+) - (\d+)`), 1, 2},
	{texts(`context (?:length|window) (?:is|of) (\d+) tokens[^;\n]{0,80}?\(?(\d+) (?:tokens )?(?:in|of|from) the (?:messages|prompt|input|text input)[^;\n]{0,60}?\d+ (?:tokens )?(?:in|for) the (?:completion|output)`), 1, 2},
	{texts(`<= (\d+)[.!]? given:? (\d+) '?inputs'? tokens and \d+`), 1, 2},
}

// ungroup writes 1,048,576 as 1048576, but leaves a range such as [1,512].
func ungroup(s string) string {
	var b strings.Builder
	ranged := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '[':
			ranged = true
		case s[i] == ']':
			ranged = false
		case s[i] == ',' && !ranged && i > 0 && digits(s[i-1:i]) == 1 && digits(s[i+1:]) == 3:
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// digits counts the digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n > 1<<40 {
		return 0
	}
	return n
}
