package wire

import (
	"maps"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Fields that the server does not know or does not take, wherever they are.

var blameREs = []*phrase{
	// unknown parameter: 'x' · unrecognized request arguments supplied: x, y · unknown name 'x'
	texts(`(?:unsupported|unknown|unrecogni[sz]ed|unexpected|unpermitted|disallowed|extraneous|extra|additional|not supported|not permitted|not allowed|invalid) (?:request |body |input |keyword |top-level |json )*` + noun +
		`(?: (?:supplied|provided|passed|found|received|given|in request|in body))?(?: (?:is|are))?[:=]? ?[\['(]?(` + dotted + `(?:'?(?:, | and |, and )'?` + dotted + `)*)`),
	// property 'x' is unsupported
	texts(noun + ` '?(` + dotted + `)'? (?:is |are |was |were )?` + no),
	// 'x' is not supported · 'x': extra inputs are not permitted
	texts(`'(` + dotted + `)'(?: ` + noun + `)?:? (?:is |are |was |were )?(?:` + no + `|(?:extra|additional) ` + noun + `)`),
	// a.b.0.c: extra inputs are not permitted
	texts(`(` + dotted + `)'?: (?:(?:extra|additional) ` + noun + ` (?:are |is )?` + no + `|unknown field|` + noun + ` (?:is |are )?` + no + `)`),
	// extra inputs are not permitted, field: 'x'
	texts(`(?:extra|additional) ` + noun + ` (?:is |are )?` + no + `,? ` + noun + `:? '?(` + dotted + `)`),
	// argument not supported: x · not supported on this model: x
	texts(noun + ` (?:is |are )?` + no + `(?: (?:on|by|for|with|in) (?:this|the) \w+)?: ?'?(` + dotted + `)`),
	// does not support parameter x
	texts(`(?:does not|do not|cannot) (?:currently )?(?:support|accept|allow|recogni[sz]e|take) (?:the |a |an |custom |setting )*(?:` + noun + ` )'?(` + dotted + `)`),
	// 'x' was unexpected
	texts(`additional properties (?:are|is) not allowed \(([^)]*)\)`),
}

var (
	fieldCodes  = words(`unsupportedparameter|unknownparameter|extraforbidden|unknownfield|unrecognizedparameter`)
	atPathRE    = texts(`unknown ` + noun + ` '([^']+)' at '([^']*)'`)
	withinRE    = texts(`(messages\.\d+[\w.]*)'? ?:[^;\n]*` + noun + ` '?(\w+)'? is`)
	unionTags   = map[string]bool{"assistant": true, "user": true, "system": true, "tool": true, "developer": true, "function": true, "custom": true, "body": true}
	reasonField = map[string]bool{"reasoning_content": true, "reasoning": true, "reasoning_details": true}
)

// maxRepairs bounds what one complaint can change.
const maxRepairs = 24

// unknownFieldsRepair answers all fields that are blamed, at once: a validator
// that lists three would otherwise cost three requests.
func unknownFieldsRepair(x *complainant) []ninelives.Repair {
	var out []ninelives.Repair
	add := func(rs []ninelives.Repair) {
		for _, r := range rs {
			if !slices.Contains(out, r) && len(out) < maxRepairs {
				out = append(out, r)
			}
		}
	}
	for _, m := range atPathRE.findAll(x.all, 64) {
		add(fieldRepair(x, append(elements(m[2]), m[1])))
	}
	if len(out) > 0 {
		return out
	}
	for _, m := range withinRE.findAll(x.all, 64) {
		add(fieldRepair(x, append(elements(m[1]), m[2])))
	}
	if len(out) > 0 {
		return out
	}
	if x.param != "" && x.word(fieldCodes) {
		add(fieldRepair(x, elements(x.param)))
		if len(out) > 0 {
			return out
		}
	}
	// In the order of the text, whichever wording found them.
	found := map[int][]string{}
	for _, p := range blameREs {
		for _, m := range p.places(x.all, 64) {
			if _, seen := found[m[2]]; !seen {
				found[m[2]] = blamed(x.all[m[2]:m[3]])
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(found)) {
		for _, path := range found[at] {
			add(fieldRepair(x, elements(path)))
		}
	}
	return out
}

// blamed splits a list of names: "a, b and c", "'a', 'b' were unexpected".
func blamed(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' || r == '\'' })
}

// elements splits a path into its names, without its indices.
func elements(path string) []string {
	names := strings.FieldsFunc(path, func(r rune) bool {
		return !(r == '_' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
	return slices.DeleteFunc(names, func(n string) bool { return n[0] >= '0' && n[0] <= '9' })
}

// fieldRepair is what keeps the field at a path from being sent.
func fieldRepair(x *complainant, path []string) []ninelives.Repair {
	if len(path) == 0 {
		return nil
	}
	head, last := path[0], path[len(path)-1]
	if len(path) == 1 {
		return topRepair(x, head)
	}
	switch snake(head) {
	case "messages", "input", "contents", "system":
		switch {
		case last == "role" || last == "content" || last == "type" || unionTags[last]:
			return nil
		case reasonField[last]:
			return append(one(RepairReplay, last, string(ninelives.ReplayForbid)), one(RepairStripField, last, "")...)
		}
		return one(RepairStripField, last, "")
	case "tools", "functions", "function_declarations":
		switch {
		case last == "strict":
			return one(RepairNoStrict, "", "")
		case last == "name":
			return one(RepairToolNames, "", "")
		case schemaKeyword(last):
			return one(RepairSchemaDrop, last, "")
		case unionTags[last]:
			return nil
		}
		return one(RepairStripField, last, "")
	case "response_format", "output_format", "output_config", "text":
		switch {
		case last == "strict":
			return one(RepairNoStrict, "", "")
		case schemaKeyword(last) && len(path) > 2:
			return one(RepairSchemaDrop, last, "")
		}
		return weaker(x)
	case "stream_options":
		return one(RepairNoStreamUsage, "", "")
	case "generation_config":
		switch snake(last) {
		case "response_schema", "response_json_schema", "response_mime_type":
			return weaker(x)
		case "thinking_config", "thinking_level", "thinking_budget":
			return one(RepairThinkingDisabled, "", "")
		}
		if schemaKeyword(last) && len(path) > 2 {
			return one(RepairSchemaDrop, last, "")
		}
		return one(RepairDropParameter, last, "")
	}
	return topRepair(x, head)
}

// topRepair is what keeps a parameter of the request itself from being sent.
func topRepair(x *complainant, name string) []ninelives.Repair {
	if strings.HasPrefix(name, "$") || schemaKeyword(name) && x.says(schemaTexts) {
		return one(RepairSchemaDrop, name, "")
	}
	name = snake(name)
	switch name {
	case "max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens":
		if x.says(tooFewTexts) {
			return nil
		}
		return renameLimit(x, name)
	case "stream_options", "include_usage":
		return one(RepairNoStreamUsage, "", "")
	case "stream", "streaming":
		return one(RepairNoStream, "", "")
	case "response_format", "output_format", "output_config", "json_schema", "json_object", "response_schema":
		return nil // which form is left depends on the words
	case "tools", "functions", "function_declarations":
		return one(RepairNoTools, "", "")
	case "strict":
		return one(RepairNoStrict, "", "")
	case "thinking", "enable_thinking":
		return one(RepairThinkingDisabled, "", "")
	case "reasoning_content", "reasoning_details":
		return append(one(RepairReplay, name, string(ninelives.ReplayForbid)), one(RepairStripField, name, "")...)
	case "cache_control":
		return one(RepairStripField, name, "")
	}
	if plausible(x, name) {
		return one(RepairDropParameter, name, "")
	}
	return nil
}

// parameters are the fields that a request may do without.
var parameters = set(`temperature top_p top_k top_a min_p typical_p frequency_penalty presence_penalty repetition_penalty
		logit_bias logprobs top_logprobs n seed stop stop_sequences user metadata store service_tier prompt_cache_key prompt_cache_retention
		reasoning_effort reasoning verbosity parallel_tool_calls tool_choice modalities audio prediction safety_identifier
		web_search_options function_call functions betas context_management container mcp_servers thinking_budget
		chat_template_kwargs random_seed safe_prompt truncation include background plugins transforms provider route
		disable_parallel_tool_use speed inference_geo effort`)

// essential are the fields without which there is no request, and words that
// stand where a name could.
var essential = set(`model models messages input inputs contents content role roles prompt type name value values body json request
		endpoint api field fields parameter parameters argument arguments key keys property properties option format
		url path method data text image image_url input_image user_message system developer assistant tool true false
		null undefined with for in on by the this and or at to of supplied provided required auto token tokens error
		schema function tool_use tool_result not no is are was were be been it that which your our an a when while
		because only yet any all currently here unexpected forbidden allowed permitted unsupported unknown supported
		deprecated invalid disallowed rejected unavailable please check see try must should will we you if so`)

// plausible: the name is a known parameter, or looks like one: it is spelt
// like a name, or is set off as one in the sentence.
func plausible(x *complainant, name string) bool {
	switch {
	case parameters[name]:
		return true
	case essential[name], len(name) > 64:
		return false
	case strings.Contains(name, "_"), snake(x.param) == name:
		return true
	}
	return strings.Contains(x.lower, "'"+name+"'") || strings.Contains(x.lower, "["+name+"]") ||
		strings.Contains(x.lower, ": "+name) || strings.Contains(x.lower, name+": ")
}

// snake writes a name the way that requests spell it: presencePenalty as
// presence_penalty.
func snake(s string) string {
	if strings.ToLower(s) == s {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z' {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// keywords are those of JSON schema that servers are known to reject.
var keywords = set(`$schema $id $ref $defs $comment $anchor $dynamicRef $dynamicAnchor $vocabulary definitions
		additionalProperties additional_properties unevaluatedProperties patternProperties propertyNames minProperties maxProperties dependencies dependentRequired dependentSchemas
		allOf anyOf oneOf not if then else const default examples example deprecated readOnly writeOnly title nullable discriminator
		minLength maxLength pattern format contentEncoding contentMediaType minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
		minItems maxItems uniqueItems contains minContains maxContains prefixItems additionalItems unevaluatedItems enum
		any_of one_of all_of min_length max_length exclusive_minimum exclusive_maximum min_items max_items`)

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}

func schemaKeyword(s string) bool { return strings.HasPrefix(s, "$") || keywords[s] }

// Schemas.

var (
	schemaTexts   = texts(`schema|function_?declarations|'?parameters'?\b|json payload|keyword|in context`)
	strictTexts   = texts(`additional_?properties'?[^;\n]{0,60}(required to be|must be|should be|be (set to )?false)|'?required'?[^;\n]{0,30}required to be supplied|including every key|all (fields|properties)[^;\n]{0,20}(must be )?required|\bstrict\b`)
	keywordRE     = texts(`'?(\$?[A-Za-z_]\w*)'?(?: keywords?| is| are| was|:)* ` + no)
	keywordLeftRE = texts(`(?:` + no + `|does not support)([^;\n]{0,80})`)
	namedRE       = exact(`(['{(\[ ])(\$?[A-Za-z_]\w*)`)
	// keywordPathRE names a keyword as the last step of a path: …properties[x].format: only …
	keywordPathRE   = texts(`(?:parameters|properties|schema)[\w.\[\]$]*\.(\$?[A-Za-z_]\w*): `)
	strictModeTexts = texts(`\bstrict( mode)?\b[^;\n]{0,30}(` + no + `|\bonly\b)`)
	schemaWords     = words(`invalidfunctionparameters|invalidjsonschema|invalidschema`)
)

func schemaRepair(x *complainant) []ninelives.Repair {
	if x.says(strictModeTexts) {
		return one(RepairNoStrict, "", "")
	}
	inSchema := x.says(schemaTexts) || x.word(schemaWords)
	if !inSchema {
		return nil
	}
	if x.says(strictTexts) {
		return one(RepairNoStrict, "", "")
	}
	var out []ninelives.Repair
	drop := func(keyword string) {
		if r := (ninelives.Repair{Name: RepairSchemaDrop, Param: keyword}); schemaKeyword(keyword) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, re := range []*phrase{keywordRE, keywordPathRE} {
		for _, m := range re.findAll(x.all, 32) {
			drop(m[1])
		}
	}
	for _, m := range keywordLeftRE.findAll(x.all, 32) {
		for _, n := range namedRE.findAll(m[1], 16) {
			// A word that stands bare must be one that is no plain English.
			if n[1] != " " || strings.HasPrefix(n[2], "$") || strings.ToLower(n[2]) != n[2] || strings.Contains(n[2], "_") {
				drop(n[2])
			}
		}
	}
	if len(out) == 0 && x.word(schemaWords) {
		return one(RepairNoStrict, "", "")
	}
	return out
}

// The form of the answer.

var (
	formTexts       = texts(`response_?format|output_?format|output_config|json_schema|json_object|json mode|structured outputs?|response_?schema|response mime`)
	objectOnlyTexts = texts(`json_object|json mode`)
	schemaFormTexts = texts(`json_schema|structured outputs?|response_?schema`)
	wordJSONTexts   = texts(`word '?json\b`)
	knowsObjectRE   = texts(`(must be|only|expected|one of|should be|use|supported|allowed)[^;\n]{0,60}json_object`)
	knowsSchemaRE   = texts(`(must be|only|expected|one of|should be|use|supported|allowed)[^;\n]{0,60}json_schema`)
	formNoTexts     = texts(`must be|should be|enabled only|only (enabled|available|supported)`)
)

func outputFormRepair(x *complainant) []ninelives.Repair {
	if strings.HasPrefix(x.param, "response_format") || x.says(formTexts) && (x.says(rejectTexts) || x.says(formNoTexts) || x.says(wordJSONTexts)) {
		return weaker(x)
	}
	return nil
}

// weaker is the next weaker form of structured output: a schema becomes plain
// JSON, plain JSON becomes a matter of the prompt. Messages have no plain JSON
// but forced tools.
func weaker(x *complainant) []ninelives.Repair {
	next := ninelives.SchemaObject
	if x.answer.Candidate.Protocol == ninelives.AnthropicMessages {
		next = ninelives.SchemaTool
	}
	whole := x.param == "response_format" && x.word(fieldCodes)
	switch {
	case x.applied(RepairSchemaWeaker, string(next)), x.says(wordJSONTexts), whole, x.says(knowsSchemaRE) && !x.says(objectOnlyTexts),
		x.says(objectOnlyTexts) && !x.says(schemaFormTexts) && !x.says(knowsObjectRE):
		next = ninelives.SchemaNone
	}
	return one(RepairSchemaWeaker, "", string(next))
}

// Tools and thinking as a whole.

var (
	toolsTexts    = texts(`(does not|do not|cannot|not) support\b[^;\n]{0,30}(\btools?\b|tool[ _-]?(use|call\w*)|function[ _-]?call\w*)|(\btools?\b|tool[ _-]?(use|call\w*)|function[ _-]?call\w*)'?( is| are)? (not (supported|enabled|available)|unsupported)|(unsupported|unknown|unrecogni[sz]ed|unexpected)[^;\n]{0,20}\btools\b`)
	thinkingTexts = texts(`enable_thinking[^;\n]{0,60}(false|` + no + `)|\bthinking\b[^;\n]{0,60}(` + no + `|must be (set to )?(false|disabled))|(does not|do not|cannot|not) support\b[^;\n]{0,30}\bthinking\b|budget_tokens[^;\n]{0,80}(must|should|less|greater|at least)|adaptive thinking`)
)

func toolsRepair(x *complainant) []ninelives.Repair {
	if x.says(toolsTexts) && !x.says(autoToolTexts) {
		return one(RepairNoTools, "", "")
	}
	return nil
}

func thinkingRepair(x *complainant) []ninelives.Repair {
	if x.says(thinkingTexts) {
		if x.says(budgetTexts) {
			return once(RepairThinkingDisabled, "")
		}
		return one(RepairThinkingDisabled, "", "")
	}
	return nil
}

var budgetTexts = texts(`budget_tokens`)

// Values that the server does not take, of parameters that it knows.

var (
	bothTexts  = texts(`\btemperature\b[^;\n]{0,30}\btop_p\b[^;\n]{0,60}(both|together|simultaneous|at the same time)|(both|together)[^;\n]{0,40}\btemperature\b[^;\n]{0,30}\btop_p\b|either[^;\n]{0,20}temperature[^;\n]{0,20}top_p`)
	valueTexts = texts(no + `|does not support|do not support|only|must be|must equal|should be|cannot|may not|unsupported|out of range|mandatory|not both|conflict`)
)

func valueRepair(x *complainant) []ninelives.Repair {
	if x.says(bothTexts) {
		return one(RepairDropParameter, "top_p", "")
	}
	if path := elements(x.param); len(path) > 0 && parameters[snake(path[0])] {
		return one(RepairDropParameter, snake(path[0]), "")
	}
	if !x.says(valueTexts) {
		return nil
	}
	for _, n := range elements(x.all) {
		if n = snake(n); distinct(n) {
			return one(RepairDropParameter, n, "")
		}
	}
	if p := effortParameter[x.answer.Candidate.Protocol]; p != "" && x.says(effortTexts) {
		return one(RepairDropParameter, p, "")
	}
	return nil
}

var effortTexts = texts(`\beffort\b`)

// effortParameter is where a protocol tells the effort.
var effortParameter = map[ninelives.Protocol]string{
	"":                          "reasoning_effort",
	ninelives.OpenAIChat:        "reasoning_effort",
	ninelives.OpenAIResponses:   "reasoning",
	ninelives.AnthropicMessages: "output_config",
}

// distinct parameters have names that are no plain words: they can be found in
// a sentence without quotes.
func distinct(n string) bool {
	return parameters[n] && (strings.Contains(n, "_") || n == "temperature" || n == "logprobs")
}
