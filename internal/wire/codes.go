package wire

import (
	"net/http"
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The words of codes, by what they mean. They are matched against squeezed
// codes (see squeeze), so that rate_limit_exceeded, RateLimitExceeded and
// "Rate limit exceeded" are one. Sources: the vendors' error tables as of
// November 2026.
var (
	policyWords = words(`contentfilter|contentpolicy|responsibleaipolicy|datainspectionfailed|moderation|sensitivecontent|contentsensitive` +
		`|newsensitive|safetycheck|prohibitedcontent|imagesafety|^invalidprompt$|^safety$|^spii$|^blocklist$|^recitation$|guardrailintervened` +
		`|policyviolation|usagepolicy|cyberpolicy|contentblocked|contentmoderation|riskcontrol`)
	moneyWords = words(`insufficientquota|insufficient\w*(balance|credit|fund)|insufficientuserquota|^billing|billing(error|notactive|hardlimit)|payment` +
		`|credit\w*(exhaust|deplet|limit|low|insufficient)|(spend|spending|budget)\w*limit|spendcap|(organization|project|account)usagelimit|exceededcurrentquota` +
		`|arrear|overdue|unpurchased|keylimit|keybudget|guardrailbudget|workspacebudget|exceedsbudget|budgetexceeded|budgetexhausted|balance(insufficient|exhaust|deplet)|outofcredit|nocredit`)
	keyBudgetWords    = words(`keylimit|keybudget`)
	inFlightWords     = words(`inflight`)
	preconditionWords = words(`^failedprecondition$`)
	regionWords       = words(`unsupportedcountry|unsupportedregion|regionnotsupported|countrynotsupported`)
	keyWords          = words(`apikeyinvalid|invalidapikey|incorrectapikey|missingapikey|invalidauth|authenticationerror|authenticationfailed|autherror|unauthenticated` +
		`|unauthorized|permissiondenied|permissionerror|permissiondeniederror|accessdenied|invalidclienttoken|unrecognizedclient|incompletesignature|requestexpired` +
		`|invalidsignature|signaturedoesnotmatch|expiredtoken|missingauthenticationtoken|accountdeactivated|requestforbidden|^forbidden$|invalidtoken|invalidcredential` +
		`|ipnotauthorized|accountlocked|accountsuspended|accountdisabled`)
	clockWords   = words(`requestexpired|incompletesignature|requesttimetooskewed|signatureexpired`)
	contextWords = words(`contextlength|contextwindow|contextsize|contextlimit|exceedcontext|requesttoolarge|requestentitytoolarge|prompttoolong|inputtoolong|messagetoolong` +
		`|tokenslimitreached|tokenlimitexceeded|payloadtoolarge|maxcontext|prompttoolarge`)
	capacityWords = words(`overload|capacity|unavailable|serverbusy|systembusy|enginebusy|modelnotready|modelserving|modelloading|^loading|badgateway|insufficientsystemresource|upstreamconnect`)
	// streamErrorWords: the stream of the model itself broke.
	streamErrorWords = words(`modelstreamerror|upstreamhttp2streamerror|streamerror`)
	rateWords        = words(`ratelimit|ratequota|burstrate|toomanyrequest|throttl|slowdown|resourceexhausted|quotaexceeded|quotaexhausted|requestlimitexceeded|usagelimit|dailylimit` +
		`|concurrencylimit|limitexceededexception|tpmexceeded|rpmexceeded|setlimitexceeded|sharedpool|freetier|allocationquota`)
	ownPoolWords = words(`freetier|keyratelimit|accountratelimit`)
	timeoutWords = words(`timeout|timedout|deadlineexceeded|^cancelled$`)
	modelWords   = words(`modelnotfound|deploymentnotfound|notfounderror|^notfound$|resourcenotfound|invalidmodel|modelnotsupported|unsupportedmodel|unknownmodel|modelnotexist` +
		`|modeldoesnotexist|modelnotopen|modelnotavailable|endpointnotfound|modeldecommissioned|modeldeprecated|noendpoints`)
	defectWords = words(`unsupportedparameter|unsupportedvalue|unknownparameter|invalidvalue|invalidtype|missingrequired|invalidfunction|invalidjson|invalidschema|extraforbidden` +
		`|validationexception|validationerror|messageorder|toolusefailed|unprocessable|malformed|^notsupportederror$|^notimplemented`)
	// weakDefectWords are written on nearly everything; they count only where
	// nothing else is known.
	weakDefectWords = words(`invalidrequest|badrequest|invalidargument|invalidparam|wronginput`)
)

// The sentences, by what they mean. They are matched against levelled text.
var (
	policyTexts = texts(
		`content (management )?(policy|policies)|usage (policy|policies|guidelines)|content filter|(flagged|blocked|rejected|filtered|stopped|refused) (by|due to|for|as)[^.]{0,60}(moderation|safety|polic|filter|sensitive|harmful|violat)`,
		`violat\w+ (our |the |of |any )?\w*\s?(content|usage|safety|acceptable|use|community|terms)`,
		`consider\w* (to be )?high[- ]risk|content exists? risk|(inappropriate|unsafe|sensitive|prohibited|harmful) content|new_sensitive|safety system|responsible ai`,
		`敏感|不安全|违规内容|内容安全|审核(不|未)通过`,
	)
	moneyTexts = texts(
		`credit balance|(insufficient|not enough|low|no|zero|negative|run out of|ran out of|out of|any|lacks?) (account |available |remaining |prepaid |more )?(balance|credits?\b|funds)`,
		`(requires?|needs?|purchase|buy|add) more credits|purchase credits|(credits?|balance|prepa\w+)[^.]{0,40}(deplet|exhaust|used up|insufficient|negative|run out|overdrawn)`,
		`(spend(ing)?|budget|billing|payment)[^.]{0,20}(limit|cap)\b[^.]{0,40}(reach|exceed|hit|exhaust)|(reach|exceed|hit|exhaust)\w*[^.]{0,50}(spend(ing)?|budget|billing)[^.]{0,20}(limit|cap)`,
		`specified (\w+ )?api usage limit|usage limit for this billing|billing cycle|billing (is )?(not|in)active|billing hard limit|monthly (quota|usage|allowance|budget)`,
		`key limit exceeded|payment (is )?required|overdue|in arrears|arrearage|recharge|top[- ]?up your|used all available credits|membership|subscription[^.]{0,30}(expired|inactive|cancel|lapsed)|plan[^.]{0,20}expired`,
		`余额不足|欠费|账户余额|请充值|充值|套餐(已)?(过期|到期)|额度(已|已经)?(用尽|用完|耗尽|不足)`,
	)
	// planTexts is used by OpenAI for money and by Google for a rate limit.
	planTexts   = texts(`current quota[^.]{0,40}(plan|billing)|check your plan and billing`)
	regionTexts = texts(`(country|region|territory|location)[^.]{0,40}not (supported|available|allowed)|unsupported (countr|region|territor)|not (supported|available) in your (country|region|location)`)
	keyTexts    = texts(
		`(api|access|secret|auth\w*|x-api)[ _-]?(key|token)s?\b[^.]{0,40}(not valid|invalid|incorrect|expired|missing|revoked|disabled|not found|required|deactivated|wrong|not provided|malformed)`,
		`(invalid|incorrect|wrong|expired|missing|unknown|unrecognized|revoked|bad|no) (\w+ )?(api|access|x-api|secret)[ _-]?(key|token)`,
		`authentication (fail|error|credential|required|token)|no auth credentials|\bunauthori[sz]ed\b|not authenticated|invalid (authentication|bearer|credential|authorization)|login fail|user not found|signature (expired|does not match)|security token|令牌|鉴权|无效的(api|密钥)|身份验证`,
	)
	capacityTexts = texts(
		`overload|over capacity|capacity (is |has been |was )?(currently )?(exceeded|exhausted|unavailable|reached|full|insufficient)|(system|server|compute|gpu) resources? (is |are |has been |have been )?(currently )?(exhausted|unavailable|insufficient)|insufficient (system|compute|gpu) resources?|no (available )?capacity|not enough capacity|insufficient capacity|out of capacity|at (full |max\w* )?capacity`,
		`(currently|still|is|being) (loading|warming)|loading model|model is loading|warming up|cold start`,
		`(server|system|service|engine|model)s? (is |are )?(currently |temporarily |too )?busy|queue (is |was )?full|maximum pending requests|(high|heavy|unusual|peak) (demand|traffic|load)`,
		`(temporarily|currently|service|server) (is )?(temporarily |currently )?unavailable|no healthy upstream|upstream connect|no available (channel|server|worker|instance|node|provider)|bad gateway`,
		`访问量过大|负载(已)?(过高|饱和)|繁忙|过载`,
	)
	rateTexts = texts(
		`rate[ _-]?limit|too many (requests|concurrent|tokens,? please|calls)|throttl|quota (was |is |has been )?(exceeded|exhausted|reached|used)|exceed\w*[^.]{0,40}\bquota|exceed\w*[^.]{0,30}call rate`,
		`(requests?|tokens?) per (second|minute|min|hour|day)|slow down|\bresources? (has been |have been |is |are |was )?exhausted|concurren\w+[^.]{0,20}(limit|exceed|reach)|(max|maximum)[^.]{0,20}concurren|usage limit|limit exhausted|daily limit|free-models-per`,
		`请求过(于|多)|频率|限流|限速|速率限制|并发`,
	)
	modelTexts = texts(
		`\bmodel\b[^.]{0,10}('[^']{1,120}'|[^\s']{1,120})?[^.]{0,30}(does not exist|not exist|not found|not available|is unavailable|no longer (available|supported)|decommissioned|deprecated|retired|has been removed|is not a valid model)`,
		`\bmodel '?[^\s']{1,120}'? is not supported|\bthe requested model is not (supported|available)|(no|unknown|invalid|unsupported|unrecognized) model\b|not a valid model|no such model|no endpoints (found|available)|no allowed providers|deployment[^.]{0,40}(does not exist|not found)|模型不存在|模型不可用|model not exist`,
		`supported (api )?model names? (are|is)\b|\bmodel (id|identifier|name)\b[^.;\n]{0,20}(invalid|not valid|unknown)|\bmodel names?\b[^;\n]{0,160}but you (passed|gave|sent)`,
	)
	timeoutTexts = texts(`timed? ?out|deadline (expired|exceeded)`)
	dailyTexts   = texts(`per[ -]day\b|\bdaily\b|\bTPD\b|\bRPD\b|每(天|日)|今日`)
	bareTexts    = texts(`quota (was |is |has been )?(exceeded|exhausted|used up)|exceed\w*[^.]{0,20}\bquota`)
)

// word reports whether one of the complaint's codes matches.
func (c *complaint) word(p *phrase) bool {
	return slices.ContainsFunc(c.words, func(w string) bool { return p.in(w, w) })
}

// says reports whether one of its sentences matches.
func (c *complaint) says(p *phrase) bool { return p.in(c.all, c.lower) }

var (
	googleTexts = texts(`generativelanguage|ai\.google\.dev|googleapis\.com`)
	googleWords = words(`^resourceexhausted$`)
	perDayID    = texts(`per_?day`)
	notFoundRE  = texts(`^(404 )?(page |url |path |route |resource )?not found\.?$|invalid url|cannot (post|get) /|unknown (url|endpoint|path)|no route|nothing to see here|unknown request url|method not allowed`)
)

// google: the body is Google's, whose words about plan and billing mean a rate.
func (c *complaint) google() bool {
	return len(c.quotaIDs) > 0 || c.word(googleWords) || c.says(googleTexts)
}

// perDay: Google names a daily quota; its delay then misleads.
func (c *complaint) perDay() bool {
	return slices.ContainsFunc(c.quotaIDs, perDayID.matches)
}

// daily: the limit that was hit is one of a day.
func (c *complaint) daily() bool {
	return c.perDay() || c.word(freeDayWords) || c.says(dailyTexts)
}

var freeDayWords = words(`daily|perday`)

// barequota: a quota is gone and nothing is said of when it comes back.
func (c *complaint) barequota() bool {
	return c.says(bareTexts) && len(c.quotaIDs) == 0 && !c.word(throttleWords)
}

var throttleWords = words(`throttl|ratelimit|toomanyrequest`)

// misrouted: the server knows no such path, so the base URL is wrong.
func (c *complaint) misrouted() bool {
	return c.empty || len(c.texts) == 1 && notFoundRE.matches(c.texts[0])
}

// glmClasses are the numeric codes of Z.ai and Zhipu (docs.z.ai/api-reference/api-code).
// Codes that are missing are judged by their text.
var glmClasses = map[string]ninelives.Class{
	"1000": ninelives.ClassAuth, "1001": ninelives.ClassAuth, "1002": ninelives.ClassAuth, "1003": ninelives.ClassAuth, "1004": ninelives.ClassAuth,
	"1110": ninelives.ClassAuth, "1111": ninelives.ClassAuth, "1112": ninelives.ClassAuth, "1120": ninelives.ClassAuth, "1121": ninelives.ClassAuth,
	"1113": ninelives.ClassBilling, "1309": ninelives.ClassBilling,
	"1211": ninelives.ClassModelNotFound, "1311": ninelives.ClassModelNotFound, "1221": ninelives.ClassModelNotFound, "1222": ninelives.ClassModelNotFound,
	"1220": ninelives.ClassAuth,
	"1230": ninelives.ClassUnknown, "1234": ninelives.ClassUnknown,
	"1261": ninelives.ClassContextLength,
	"1301": ninelives.ClassContentFilter,
	"1302": ninelives.ClassRateLimit, "1303": ninelives.ClassRateLimit, "1304": ninelives.ClassRateLimit, "1308": ninelives.ClassRateLimit,
	"1310": ninelives.ClassRateLimit, "1313": ninelives.ClassRateLimit,
	"1305": ninelives.ClassOverloaded, "1312": ninelives.ClassOverloaded,
	"1210": ninelives.ClassFormat, "1212": ninelives.ClassFormat, "1213": ninelives.ClassFormat, "1214": ninelives.ClassFormat, "1215": ninelives.ClassFormat,
	// Mistral's numbers stand in the same place and do not overlap.
	"1300": ninelives.ClassRateLimit, "1500": ninelives.ClassModelNotFound, "3505": ninelives.ClassOverloaded,
}

// longQuota are the GLM codes of quotas that last for hours or weeks.
var longQuota = map[string]bool{"1304": true, "1308": true, "1310": true, "1313": true}

// minimaxClasses are the numeric codes of MiniMax (platform.minimax.io/docs/api-reference/errorcode.md),
// told in base_resp or in parentheses at the end of the message. 1039 and 2013
// are judged by their text.
var minimaxClasses = map[string]ninelives.Class{
	"1000": ninelives.ClassUnknown, "1024": ninelives.ClassUnknown, "1033": ninelives.ClassUnknown, "1013": ninelives.ClassUnknown,
	"1001": ninelives.ClassTimeout,
	"1002": ninelives.ClassRateLimit, "1041": ninelives.ClassRateLimit, "2045": ninelives.ClassRateLimit, "2056": ninelives.ClassRateLimit,
	"1004": ninelives.ClassAuth, "2049": ninelives.ClassAuth,
	"1008": ninelives.ClassBilling,
	"1026": ninelives.ClassContentFilter, "1027": ninelives.ClassContentFilter,
}

func byVendorCode(a Answer, c *complaint, status int) (verdict, bool) {
	class, ok := minimaxClasses[c.minimax]
	if !ok {
		class, ok = glmClasses[c.glm]
	}
	if !ok {
		return verdict{}, false
	}
	v := verdict{class: class}
	switch class {
	case ninelives.ClassFormat:
		if overflow(c, status) {
			v.class = ninelives.ClassContextLength
		} else {
			v.repairs = findRepairs(a, c)
		}
	case ninelives.ClassContextLength:
		if status == http.StatusTooManyRequests {
			return verdict{}, false
		}
	case ninelives.ClassRateLimit:
		v.final = longQuota[c.glm]
	}
	return v, true
}
