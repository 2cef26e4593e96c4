package wire

import (
	"slices"
	"strconv"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// findRepairs finds the changes of the request that a complaint asks for. The
// rules look for kinds of wording (a thing that is named, and a verb that
// rejects it) and run from the special to the general; the first that knows an
// answer wins, so that a sentence about roles is not read as one about a
// parameter.
func findRepairs(a Answer, c *complaint) []ninelives.Repair {
	x := &complainant{complaint: c, answer: a}
	for _, rule := range []func(*complainant) []ninelives.Repair{
		reasoningRepair,
		argumentsRepair,
		toolChoiceRepair,
		outputRangeRepair,
		unknownFieldsRepair,
		toolIDsRepair,
		historyRepair,
		rolesRepair,
		imagesRepair,
		toolNamesRepair,
		outputNameRepair,
		streamRepair,
		schemaRepair,
		outputFormRepair,
		toolsRepair,
		thinkingRepair,
		valueRepair,
	} {
		if r := rule(x); len(r) > 0 {
			return r
		}
	}
	return nil
}

// complainant is a complaint with what the rules need to know beside it.
type complainant struct {
	*complaint
	answer Answer
}

func one(name, param, value string) []ninelives.Repair {
	return []ninelives.Repair{{Name: name, Param: param, Value: value}}
}

func once(name, value string) []ninelives.Repair {
	return []ninelives.Repair{{Name: name, Value: value, Once: true}}
}

// applied reports whether a repair of this name and value is in force already.
func (x *complainant) applied(name, value string) bool {
	return slices.ContainsFunc(x.answer.Applied, func(r ninelives.Repair) bool { return r.Name == name && r.Value == value })
}

// no is every way to say that something is not taken.
const no = `(?:not (?:currently |yet |been |be )?(?:supported|permitted|allowed|recogni[sz]ed|valid|available|enabled|accepted|implemented|expected|understood)` +
	`|unsupported|unknown|unrecogni[sz]ed|unexpected|disallowed|forbidden|deprecated|unavailable|invalid|rejected|no longer supported|incompatible|does not exist|cannot be (?:used|set|specified|provided))`

// noun is every word for a field of the request.
const noun = `(?:parameters?|params?|arguments?|args?|fields?|keys?|propert(?:y|ies)|names?|options?|inputs?|attributes?|settings?|members?)\b`

// dotted is the path of a field, perhaps in quotes.
const dotted = `[A-Za-z_$][\w$]*(?:\[\d+\]|\.[\w$]+)*`

// Reasoning.

var (
	replayFieldREs = []*phrase{texts(`\b(reasoning_content|reasoning_details)\b`), texts(`\b(reasoning|thinking)\b`)}
	missingTexts   = texts(`missing|absent|omitted|\bno '?(reasoning|thinking|thought)|without '?(reasoning|thought)|lacks|must (also )?be (passed|sent|given|provided|returned|included|present)|(passed|sent) back|is required|are required|field required|not (found|present|provided|included)|must (include|contain|have)|expected[^;\n]{0,30}to (be present|include)`)
	forbidTexts    = texts(`must not|should not|may not|not (allowed|permitted|supported|accepted|expected)|unexpected|unknown|unrecogni[sz]ed|unsupported|extra|remove|forbidden|invalid field`)
	signatureTexts = texts(
		`invalid[^;\n]{0,20}signature|signature[^;\n]{0,40}(invalid|mismatch|corrupt|not valid|verif|field required|expired)|corrupted thought`,
		`thinking[^;\n]{0,80}(cannot be (modified|changed|altered|edited)|must remain|must not be (modified|changed|altered|edited)|must contain|(was|were|been) (modified|changed|altered|edited))`,
		`encrypted content[^;\n]{0,60}(could not|cannot|failed|invalid)|invalid_encrypted_content|without its required[^;\n]{0,30}(item|reasoning)|reasoning item[^;\n]{0,60}(not found|without)`,
	)
	thinkingFirstTexts = texts(`expected[^;\n]{0,40}thinking[^;\n]{0,60}found|must start with a thinking|start with[^;\n]{0,20}thinking`)
	thoughtTexts       = texts(`thought_?signature`)
	encryptedWords     = words(`invalidencryptedcontent|invalidsignature|thinkingsignature`)
)

func reasoningRepair(x *complainant) []ninelives.Repair {
	switch {
	case x.says(thoughtTexts):
		r := one(RepairDummySignature, "", GeminiDummySignature)
		if !x.says(missingTexts) {
			r = append(r, once(RepairDropReasoning, "")...)
		}
		return r
	case x.says(thinkingFirstTexts):
		return once(RepairThinkingDisabled, "")
	case x.says(signatureTexts), x.word(encryptedWords):
		return once(RepairDropReasoning, "")
	}
	field := ""
	for _, re := range replayFieldREs {
		if m := re.find(x.all); m != nil && field == "" {
			field = strings.ToLower(m[1])
		}
	}
	if field == "" {
		return nil
	}
	plain := field == "reasoning" || field == "thinking" // also names of parameters
	switch {
	case x.says(missingTexts) && (!plain || x.says(historyTexts)):
		rule := ninelives.ReplayRequireAlways
		if x.says(perCallTexts) && !x.applied(RepairReplay, string(ninelives.ReplayRequireOnToolCalls)) {
			rule = ninelives.ReplayRequireOnToolCalls
		}
		return one(RepairReplay, field, string(rule))
	case x.says(forbidTexts) && (!plain || x.says(messageTexts)):
		return append(one(RepairReplay, field, string(ninelives.ReplayForbid)), one(RepairStripField, field, "")...)
	}
	return nil
}

var (
	historyTexts = texts(`passed back|sent back|assistant|message|history|previous|content\[`)
	messageTexts = texts(`messages?[.\[' ]`)
	perCallTexts = texts(`tool[ _-]?calls? (message|turn)`)
)

// Arguments of earlier calls: an object or a string.

var (
	argumentsTexts  = texts(`\barguments\b|\btool_calls?\b|\binput\b`)
	wantStringTexts = texts(`unmarshal object[^;\n]{0,120}type string|expected (a |type )?'?str(ing)?'?[^;\n]{0,40}(got|but|found|received)[^;\n]{0,20}(object|dict|map)|arguments[^;\n]{0,40}(must be|should be|input should be)( a| an)?( valid)? (json )?string|invalid type: map, expected a string`)
	wantObjectTexts = texts(`unmarshal string[^;\n]{0,160}(type|arguments|map)|expected (a |an |type )?'?(object|dict\w*|map)'?[^;\n]{0,40}(got|but|found|received)[^;\n]{0,20}str|(arguments|tool_use\.input|input)[^;\n]{0,40}(must be|should be|input should be)( a| an)?( valid)? (json )?(object|dict\w*|map)|item pairs from a mapping|invalid type: string, expected (a )?(map|struct)|looks like object`)
)

func argumentsRepair(x *complainant) []ninelives.Repair {
	if !x.says(argumentsTexts) && !strings.Contains(x.param, "arguments") {
		return nil
	}
	switch {
	case x.says(wantStringTexts):
		return one(RepairToolArgsString, "", "")
	case x.says(wantObjectTexts):
		return one(RepairToolArgsObject, "", "")
	}
	return nil
}

// The choice of a tool.

var toolChoiceTexts = texts(
	`\btool[_ ]?choice\b[^;\n]{0,80}`+no, no+`[^;\n]{0,60}\btool[_ ]?choice\b`, `(does not|do not|cannot|may not)[^;\n]{0,60}tool[_ ]?choice`,
	`tool[_ ]?choice[^;\n]{0,60}(must be|only|forces)`,
)

func toolChoiceRepair(x *complainant) []ninelives.Repair {
	if x.says(autoToolTexts) {
		return nil // only the server's owner can switch this on
	}
	if x.says(toolChoiceTexts) || strings.HasPrefix(x.param, "tool_choice") {
		return one(RepairDropParameter, "tool_choice", "")
	}
	return nil
}

var autoToolTexts = texts(`enable-auto-tool-choice|tool-call-parser`)

// History: what is always repaired before a request is written. The fault can
// then be retried once, for the copy that was rejected may be an older one.

var historyRepairTexts = texts(
	`(content|text|message|block|part|input)s?\b[^;\n]{0,60}((must|should|may|can|cannot|can)( not)? be (non-?empty|empty)|non-whitespace|must not be empty|is empty|are empty|be null|non-?empty)|messages? must have content`,
	`(trailing|ending|final)[^;\n]{0,20}whitespace|end with[^;\n]{0,20}whitespace|empty text block`,
	`tool_use[^;\n]{0,60}(without|must have|corresponding|unique|missing)|unexpected[^;\n]{0,30}tool_use_id|tool_result[^;\n]{0,60}(without|must have|corresponding|unexpected|missing)`,
	`tool_calls?'?[^;\n]{0,60}(must be followed|followed by|did not have|have not been answered|without)|must be (a response|preceded|followed)|tool_call_ids?'?[^;\n]{0,40}(not found|unknown|missing|did not have|without|duplicate|must be|invalid)`,
	`no tool (call|output) found|function (response|call)[^;\n]{0,60}(equal|immediately after|comes|must|number)|not the same number of function|each tool (call|use)[^;\n]{0,40}(result|response)`,
	`(role )?'?tool'?[^;\n]{0,20} after[^;\n]{0,20}'?(user|system)'?|call id[^;\n]{0,60}(length|a-z)|duplicate[^;\n]{0,30}(tool|call)[^;\n]{0,20}id`,
	`arguments?'?\b[^;\n]{0,80}(valid json|not (valid )?json|json format|parse|decode|unterminated|malformed)|(parse|decode|invalid|malformed|unterminated)[^;\n]{0,60}\barguments`,
)

// Ids of calls that came from another vendor.
var (
	idTooLongRE = texts(`\b(?:tool_call_|call_)?id'?:? string too long[^;\n]{0,60}maximum length (\d{1,3})\b`)
	idLengthRE  = texts(`call id[^;\n]{0,200}length of (\d{1,2})\b`)
)

func toolIDsRepair(x *complainant) []ninelives.Repair {
	if m := idTooLongRE.find(x.all); m != nil {
		return one(RepairToolIDMax, "", m[1])
	}
	if m := idLengthRE.find(x.all); m != nil {
		return one(RepairToolIDExact, "", m[1])
	}
	return nil
}

func historyRepair(x *complainant) []ninelives.Repair {
	if x.says(historyRepairTexts) {
		return one(RepairHistory, "", "")
	}
	if x.word(badCallWords) {
		return once(RepairHistory, "") // the model's call was bad: the next may be good
	}
	if x.says(cacheTexts) {
		return one(RepairStripField, "cache_control", "")
	}
	return nil
}

var badCallWords = words(`toolusefailed|malformedfunctioncall`)

var cacheTexts = texts(`cache_control[^;\n]{0,80}(maximum|at most|no more|too many|exceed|not (supported|allowed|permitted)|found)|(maximum|at most|too many)[^;\n]{0,40}cache_control`)

// Roles.

var (
	afterRoleRE    = texts(`\b(user|assistant|tool|system|developer)'?(?: message| role| turn)?s? (?:is |was )?(?:directly |immediately |right )?(?:after|following|follows|(?:cannot|must not|may not) follow) (?:a |an |the )?(?:role:? )?'?(user|assistant|tool|system)\b`)
	alternateTexts = texts(`(successive|consecutive|adjacent|repeated|back-to-back|two|multiple)[^;\n]{0,40}(roles?|user|assistant|messages?)|alternat|interleav|same role|in a row|(角色|user)[^;\n]{0,20}交替`)
	firstUserTexts = texts(`first message[^;\n]{0,20}(must|should|has to)[^;\n]{0,20}\buser\b|(must|should|has to) (begin|start) with[^;\n]{0,20}\buser\b`)
	developerTexts = texts(`developer`)
	systemTexts    = texts(`\bsystem\b`)
	roleTexts      = texts(`\broles?\b|variant|instruction|\bsystem (message|prompt)|角色`)
	roleNoTexts    = texts(no + `|expected one of|does not support|only[^;\n]{0,40}(supported|allowed)|must be (one of|at|the first)|should be (one of|in)|incorrect|not enabled|not one of|is not in|角色信息不正确|at the (beginning|start)`)
	systemNoTexts  = texts(`(system|developer) (role|message|prompt|instruction)s?[^;\n]{0,40}(not (supported|enabled|allowed|available)|unsupported|must be|should be)|does not support\b[^;\n]{0,40}'?system|(system|developer) instructions? (is|are) not`)
	knownSystemRE  = texts(`expected one of[^;\n]{0,80}system|(must be|should be|\bsupported|\ballowed|\bvalid)[^;\n]{0,60}\bsystem\b`)
	prefillTexts   = texts(`pre-?fill|(end|finish|conclude)s? with[^;\n]{0,20}\buser\b|(last|final)[^;\n]{0,30}(message|turn|role)[^;\n]{0,40}(must be|should be|be|must have|should have)[^;\n]{0,20}\b(user|tool)\b|(last|final)[^;\n]{0,30}(message|turn|content)[^;\n]{0,20}\bfrom (a |the )?'?user\b|expected last role|cannot continue from|last message[^;\n]{0,20}not[^;\n]{0,10}assistant`)
)

func rolesRepair(x *complainant) []ninelives.Repair {
	if x.says(prefillTexts) {
		return one(RepairNoPrefill, "", "")
	}
	if m := afterRoleRE.find(x.all); m != nil {
		this, before := strings.ToLower(m[1]), strings.ToLower(m[2])
		switch {
		case this == before:
			return one(RepairMergeRoles, "", "")
		case before == "tool":
			return one(RepairBridgeToolUser, "", "")
		case this == "tool":
			return one(RepairHistory, "", "")
		case this == "system":
			return one(RepairSystemRole, "", "")
		}
	}
	if x.says(alternateTexts) || x.says(firstUserTexts) {
		return one(RepairMergeRoles, "", "")
	}
	if x.param != "" && strings.HasSuffix(x.param, ".role") || x.says(roleTexts) && x.says(roleNoTexts) {
		switch {
		case x.says(systemNoTexts) && !x.says(knownSystemRE):
			return one(RepairSystemRole, "", "")
		case x.says(developerTexts):
			return one(RepairDeveloperRole, "", "")
		case x.says(systemTexts) && !x.says(knownSystemRE):
			return one(RepairSystemRole, "", "")
		case x.says(vagueRoleTexts):
			return one(RepairDeveloperRole, "", "")
		}
	}
	return nil
}

// vagueRoleTexts reject a role without naming it; the developer role is the
// one that servers do not know.
var vagueRoleTexts = texts(`(unexpected|unknown|invalid|incorrect|unsupported|unrecogni[sz]ed)[^;\n]{0,20}\broles?\b|\brole[^;\n]{0,30}(incorrect|invalid|not valid|not supported)|角色信息不正确`)

// Images.

// picture is a word for images, and no piece of a model's name.
const picture = `(?:^|[\s'(,:;])(?:images?|image_url|input_image|vision|pictures?|multi-?modal)\b`

var imagesTexts = texts(
	picture+`[^;\n]{0,60}(`+no+`|only supported|text[- ]only|only text)`,
	`(`+no+`|does not (accept|have|handle|process)|do not support|does not support|cannot (accept|process|handle|read)|unknown variant|no endpoints[^;\n]{0,20}support)[^;\n]{0,40}`+picture,
	`at most 0 image|only (accepts?|supports?|takes?) text|text[- ]only model|not a (multi-?modal|vision)|input should be 'text'|(must|should) be (a )?'?text'?( content)? only|content[^;\n]{0,30}must be a string|missing data required for image`,
	`不支持[^;\n]{0,10}(图片|图像|视觉|多模态)|content\.type[^;\n]{0,30}\['?text'?\]`,
)

var badImageTexts = texts(`image[^;\n]{0,40}(too (large|big|small|many)|corrupt|could not (be )?(download|decode|process|fetch)|base64|dimension|size|media type|format|mime|is valid|valid image)|base64[^.;\n]{0,20}image|(download|decode|fetch|process)[^.;\n]{0,20}image|timeout`)

func imagesRepair(x *complainant) []ninelives.Repair {
	if x.says(imagesTexts) && !x.says(badImageTexts) && !x.says(formTexts) {
		return one(RepairNoImages, "", "")
	}
	return nil
}

// Tool names.

var toolNameTexts = texts(
	`(tool|function)s?\b[^;\n]{0,40}\bnames?\b[^;\n]{0,80}(pattern|match|invalid|too long|longer|length|characters?|must|only|exceed|start)`,
	`(invalid|illegal|bad|too long)[^;\n]{0,30}(tool|function)[ _.]*names?|name of (the )?(tool|function)[^;\n]{0,60}(invalid|too long|must|pattern|exceed)|工具名|函数名`,
)

func toolNamesRepair(x *complainant) []ninelives.Repair {
	if x.says(toolNameTexts) || toolNamePath.matches(x.param) {
		return one(RepairToolNames, "", "")
	}
	return nil
}

var toolNamePath = texts(`(tools|functions|tool_calls)\b.*\bname$`)

// The limit of the answer.

var (
	limitNameRE  = texts(`\b(max_completion_tokens|max_output_tokens|max_new_tokens|max_tokens|maxoutputtokens)\b`)
	answerTexts  = texts(`max_(completion_|output_|new_)?tokens|maxoutputtokens|max(imum)? tokens|(output|completion) tokens|tokens you requested`)
	answerLimits = []*phrase{
		texts(`[\[(]\s*\d+\s*(?:,|-|to|\.\.)\s*(\d+)\s*[\])]`),
		texts(`\d+ ?> ?(\d+)`),
		texts(`(?:at most|no more than|up to|not (?:be )?(?:exceed|more than|greater than|larger than|above|over)|cannot exceed|may not exceed|exceeds?(?: the)?(?: \w+){0,3}(?: limit| maximum)(?: of)?|less than or equal to|smaller than or equal to|lower than or equal to|<=|≤|limit(?:ed)? (?:of|to|is)|maximum(?: \w+){0,4}(?: is| of|:)|max(?: is|:)|supports?(?: at most| up to| only)?|allows?(?: at most| up to| only)?|between '?\d+'? and|from '?\d+'? to|range(?: is| of)? '?\d+'? ?(?:-|to|and)|最大(?:值)?(?:为|是)?|不(?:能|得)?超过)\s*'?(\d+)`),
	}
	strictLimit = texts(`(?:less|smaller|lower|fewer) than '?(\d+)`, `to '?(\d+)'? \(exclusive\)`)
	tooFewTexts = texts(`below (the )?minimum|at least|minimum value|greater than or equal|>= ?\d|must be (greater|positive|larger)|too (small|low)`)
)

// outputRangeRepair clamps the limit to the number that the complaint names.
func outputRangeRepair(x *complainant) []ninelives.Repair {
	if !x.says(answerTexts) && !limitNameRE.matches(x.param) {
		return nil
	}
	text := ungroup(x.all)
	for _, p := range answerLimits {
		if m := p.find(text); m != nil && atoi(m[1]) > 0 {
			return one(RepairClampMaxTokens, "", m[1])
		}
	}
	if m := strictLimit.find(text); m != nil && atoi(m[1]+m[2]) > 1 {
		return one(RepairClampMaxTokens, "", strconv.Itoa(atoi(m[1]+m[2])-1))
	}
	return nil
}

// outputNameRepair takes the limit's other name.
func outputNameRepair(x *complainant) []ninelives.Repair {
	if x.says(tooFewTexts) || !x.says(rejectTexts) {
		return nil
	}
	if m := limitNameRE.find(x.param + " " + x.all); m != nil {
		return renameLimit(x, m[1])
	}
	return nil
}

var rejectTexts = texts(no + `|does not support|instead|extra inputs`)

// renameLimit turns to the other name of the answer limit: the one that the
// complaint recommends, else the one that most servers know.
func renameLimit(x *complainant, name string) []ninelives.Repair {
	name = strings.ToLower(name)
	if x.answer.Candidate.Protocol == ninelives.OpenAIResponses {
		return one(RepairDropParameter, name, "") // it knows no other name
	}
	for _, m := range limitNameRE.findAll(x.all, 8) {
		if other := strings.ToLower(m[1]); other != name {
			return one(RepairRenameMaxTokens, "", other)
		}
	}
	if name == "max_tokens" {
		return one(RepairRenameMaxTokens, "", "max_completion_tokens")
	}
	return one(RepairRenameMaxTokens, "", "max_tokens")
}

// Streams.

var (
	streamUsageTexts = texts(`stream_options|include_usage`)
	noStreamTexts    = texts(`(does not|do not|cannot|not) support\b[^;\n]{0,40}\bstream(ing|ed)?\b|\bstream(ing|ed)?\b'?[^;\n]{0,60}(`+no+`|does not support true|must be (set to )?false|only[^;\n]{0,20}false)|`+no+`[^;\n]{0,40}\bstream(ing)?\b`, `cannot[^;\n]{0,40}(with|in|and|while) stream`, `non-?streaming (requests |calls )?only`)
	nonStreamTexts   = texts(`non-?stream|without stream`)
)

func streamRepair(x *complainant) []ninelives.Repair {
	switch {
	case x.says(streamUsageTexts) || strings.HasPrefix(x.param, "stream_options"):
		return one(RepairNoStreamUsage, "", "")
	case x.param == "stream", x.says(noStreamTexts) && !x.says(nonStreamTexts):
		return one(RepairNoStream, "", "")
	}
	return nil
}

// affordable: the money left pays for a shorter answer. A small margin is
// kept, for prices and estimates are not exact.
func affordable(c *complaint) []ninelives.Repair {
	m := affordRE.find(ungroup(c.all))
	if m == nil {
		return nil
	}
	if n := atoi(m[1]); n-n/50 > 0 {
		return once(RepairClampMaxTokens, strconv.Itoa(n-n/50))
	}
	return nil
}

var affordRE = texts(`(?:afford|(?:enough|sufficient)(?: \w+){0,4} for)(?: only| at most| up to)? '?(\d+)`)
