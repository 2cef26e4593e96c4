package conformance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What must be shown, and which test shows it. A test is written as
// "package.TestName", a script of the built binary as "script.name"; one that
// is not there fails.

// promise is a sentence or a row of a source design.
type promise struct {
	says  string
	tests []string
}

// design001 is source design 001, by its headings, as far as an agent keeps it;
// the failover and the retries of layers 1 and 2 are heal's own.
var design001 = map[string][]promise{
	"Layer 1, provider failover": {
		{"the table of reasons and cooldowns", []string{"heal.TestCodebuddyIsDesign001", "heal.TestARestLastsAsLongAsHintResetTimeOrTableSay"}},
		{"the cause chain is walked five levels deep", []string{"internal/wire.TestTheChainOfCausesIsWalkedFiveDeep"}},
		{"probes 30 s before the end of a cooldown", []string{"heal.TestCodebuddyIsDesign001"}},
		{"codebuddy.failover.providers, empty: what has a key", []string{"config.TestTheSourceDesignsSettingsAreUnderstood", "config.TestWithoutAModelTheEnvironmentIsAsked"}},
		{"isFallback: true", []string{"internal/conformance.TestDesign001SequenceAndRecovery"}},
	},
	"Layer 2, stream error recovery": {
		{"transient: two retries, 1.5 s, then 3 s", []string{"internal/conformance.TestSourceDesign001Diagram", "internal/conformance.TestDesign001SequenceAndRecovery"}},
		{"permanent: fails at once", []string{"internal/conformance.TestDesign000AStepIsTriedThreeTimesAndAWrongKeyOnce", "internal/conformance.TestAHardQuotaIsToldAtOnceAndARateLimitIsNone"}},
		{"each retry tells the model of the failure", []string{"internal/conformance.TestDesign001SequenceAndRecovery"}},
		{"a stop of the safety guard is never retried", []string{"heal.TestCodebuddyIsDesign001", "internal/conformance.TestDesign001SequenceAndRecovery", "internal/conformance.TestEachToolIsStoppedAtItsOwnCap"}},
	},
	"Layer 3, agent safety guard": {
		{"hard caps, not overridable by the agent", []string{"agent.TestAgentSafetyGuard", "agent.TestASubagentSharesTheGuardWithTheTurnThatStartedIt", "config.TestAProjectsFileCannotLiftAnything"}},
		{"max stream events 15000", []string{"agent.TestAgentSafetyGuard", "agent.TestTheGuardCanStopAStream"}},
		{"max tool calls 2000", []string{"agent.TestAgentSafetyGuard", "agent.TestAGuardStopSaysWhatWasReachedInThreeLines", "internal/conformance.TestDesign001SequenceAndRecovery"}},
		{"wall-clock timeout 60 min", []string{"agent.TestWallClockTimeout", "agent.TestTimeLimitsEndATurnExactly"}},
		{"edit_file 75, delete_file 30, run_command 100, run_terminal_command 500, web_search 60", []string{"agent.TestAgentSafetyGuard", "internal/conformance.TestEachToolIsStoppedAtItsOwnCap"}},
		{"the settings by name", []string{"config.TestTheNamesOfDesign001"}},
		{"tool loops: force stop after N in a row", []string{"agent.TestToolLoopIsToldThenStopped", "agent.TestLoopDetection", "agent.TestTheSameCallWithTheSameResultIsToldAndThenStopped"}},
		{"file edit loops: more than 20, with the reason \"file loop\"", []string{"agent.TestAgentSafetyGuard", "internal/conformance.TestAFileLoopIsFoundHoweverTheFileIsNamed"}},
		{"stop messages are for people and include the counters", []string{"agent.TestStopMessageIncludesTheCounters", "agent.TestElapsedIsWrittenInWholeUnits", "internal/conformance.TestDesign001SequenceAndRecovery"}},
		{"600 calls a minute, 200 of one tool, sliding window", []string{"agent.TestToolRateLimiterWaitsWhereTheWaitIsShort", "agent.TestToolRateLimiterRefusesWhereTheWaitIsLong",
			"agent.TestToolRateLimiterCountsAllToolsTogether", "agent.TestNoMinuteHoldsMoreCallsThanItsLimit", "agent.TestARateThatIsReachedIsWaitedForOrToldToTheModel"}},
	},
	"Layer 4, context compaction": {
		{"tier 0: no action", []string{"agent.TestTier0UnderTheThresholdNothingIsDone"}},
		{"tier 1: strip results over 200 characters", []string{"agent.TestTier1StripsResultsOver200CharactersOfOlderMessages"}},
		{"tier 2: batches with overlapping windows", []string{"agent.TestTier2SummarisesInOverlappingChunksOldestFirst"}},
		{"tier 3: the oldest half", []string{"agent.TestTier3SummarisesTheOldestHalf", "internal/conformance.TestDesign001SequenceAndRecovery"}},
		{"tier 4: plain text where summarising fails", []string{"agent.TestTier4DescribesInPlainTextWhereSummarisingFails"}},
		{"80 %: log and prepare; 90 %: tier 1 at once", []string{"agent.TestThresholds", "agent.TestTier1IsTakenAtOnceAndHigherTiersOnlyWhereItIsNotEnough", "internal/conformance.TestDesign001SequenceAndRecovery"}},
		{"higher tiers until usage is under the threshold", []string{"agent.TestCompactingComesToAnEnd", "internal/conformance.TestDesign001SequenceAndRecovery"}},
		{"the last 4 messages are never summarised", []string{"agent.TestTheLastFourMessagesAreNeverSummarised"}},
		{"nothing is summarised with fewer than 6", []string{"agent.TestFewerThanSixMessagesAreNeverCompacted"}},
		{"the table of windows", []string{"provider.TestWindowsAreThoseOfTheSourceDesign"}},
		{"setting, exact, family, 16 K", []string{"agent.TestTheWindowIsFoundInThisOrder", "provider.TestWindowsAreThoseOfTheSourceDesign"}},
		{"a new model id does not collapse to 16 K", []string{"provider.TestWindowsAreThoseOfTheSourceDesign", "agent.TestASmallWindowDoesNotSpiral"}},
	},
	"Cancellation & crash recovery": {
		{"cooperative cancellation: between steps, of one conversation, work stays and is reviewable", []string{"internal/conformance.TestDesign001SequenceAndRecovery",
			"agent.TestStopEndsToolsAndSaysWhatIsKnownOfEachCall", "agent.TestACallThatIsDoneWhenTheUserStopsKeepsItsResult"}},
		{"a policy-denied write degrades to a message", []string{"internal/conformance.TestDesign001SequenceAndRecovery", "agent.TestWhereNobodyCanBeAskedACallIsDeniedAndTheTurnGoesOn"}},
		{"a failure in mid-turn degrades to a note", []string{"internal/conformance.TestDesign001SequenceAndRecovery", "agent.TestAToolThatPanicsHasFailedAndTheTurnGoesOn"}},
		{"a failed turn is written back with failedTurn and shows on reload", []string{"internal/conformance.TestDesign001SequenceAndRecovery",
			"agent.TestKilledAtEveryWriteNothingIsLostAndNothingHappensTwice", "cmd/ninelives/tui.TestFailedTurnIsShownAndOneKeyResumesIt"}},
		{"sessions are isolated", []string{"internal/conformance.TestDesign001SequenceAndRecovery", "agent.TestSessionsDoNotTouchEachOther"}},
	},
	"Layers in a single scenario": {
		{"every line of the picture", []string{"internal/conformance.TestDesign001SequenceAndRecovery"}},
	},
}

// design000 is what source design 000 asks of an agent.
var design000 = map[string][]promise{
	"§1.2": {
		{"images become a text placeholder where only text is taken", []string{"internal/conformance.TestATurnSurvivesTheWayFromAnthropicToDeepSeekToALocalModel"}},
		{"pieces of a call's arguments are put together by index", []string{"internal/wire.TestCallsArePutTogetherByIndexAndID"}},
	},
	"§1.3": {
		{"SAVE: the reasoning is kept in the message, on the disk", []string{"internal/conformance.TestDesign000ReasoningTravelsBackAndForthAlsoOverARestart", "agent.TestWhatIsReadBackComesToTheSameState"}},
		{"BUILD: it is put back on the message of the next request", []string{"internal/conformance.TestDesign000ReasoningTravelsBackAndForthAlsoOverARestart", "internal/wire/openai.TestChatReasoningGoesWhereTheTargetWantsIt"}},
		{"with calls it is sent although it is empty", []string{"internal/wire.TestPrepareFiltersReasoning", "internal/conformance.TestATurnSurvivesTheWayFromAnthropicToDeepSeekToALocalModel"}},
	},
	"§2.2": {
		{"the agent does not know who answers", []string{"internal/conformance.TestDesign000ATurnLandsBehindAnOutage"}},
		{"all providers failed: what happened, why, what to do", []string{"internal/conformance.TestDesign000WhenAllProvidersFailTheTurnSaysWhatToDo"}},
		{"no retries times retries", []string{"internal/conformance.TestTheRequestsOfAFailingTurnAddAndDoNotMultiply", "heal.TestAttemptsAddAndNeverMultiply"}},
	},
	"§2.3": {
		{"signatures are compared, equal ones do nothing", []string{"internal/conformance.TestDesign000HotSwapReachesAllWhoAskAModel", "agent.TestSwapTakesEffectAtTheNextTurnAndOnlyWhereTheSignatureDiffers"}},
		{"runner, memory merge, background learning and subagents switch together", []string{"internal/conformance.TestDesign000HotSwapReachesAllWhoAskAModel", "agent.TestTheModelIsTheOneThatTheAgentHasAtItsStart"}},
		{"the running turn ends on the old one, the next begins on the new one", []string{"internal/conformance.TestDesign000HotSwapReachesAllWhoAskAModel"}},
	},
	"§3.1": {
		{"1 s, 2 s, at most three tries, only what is transient", []string{"internal/conformance.TestDesign000AStepIsTriedThreeTimesAndAWrongKeyOnce", "heal.TestCatbuddyIsDesign000"}},
		{"Retry-After first", []string{"heal.TestCatbuddyIsDesign000"}},
		{"/stop penetrates every layer at once", []string{"internal/conformance.TestDesign000StopPenetratesEveryWait", "heal.TestCancelPassesThroughEveryLayerAtOnce"}},
		{"persistent mode for what nobody waits for", []string{"internal/conformance.TestTheMemoryOutlastsAnOutage", "internal/conformance.TestATurnEndsTheMemorysRequest"}},
	},
	"§3.2": {{"an empty answer is nudged, twice", []string{"internal/conformance.TestDesign000AnEmptyAnswerIsNudgedTwice"}}},
	"§3.3": {
		{"a cut answer is gone on with, three times, after what was said", []string{"internal/conformance.TestDesign000ACutAnswerIsContinuedThreeTimes"}},
		{"a tool that fails is a result: Error: …", []string{"agent.TestAToolThatPanicsHasFailedAndTheTurnGoesOn", "internal/conformance.TestDesign001SequenceAndRecovery"}},
	},
	"§4": {{"the log of a turn that lands", []string{"internal/conformance.TestDesign000ATurnLandsBehindAnOutage", "internal/conformance.TestSourceDesign000Log"}}},
}

// publicFailures are the ways in which agents have failed in public, by kind.
var publicFailures = []struct {
	kind      string
	addresses string
	tests     []string
}{
	{"a call without its result after Esc bricks the session", "anthropics/claude-code#1956 #2179 #1584",
		[]string{"agent.TestStopEndsToolsAndSaysWhatIsKnownOfEachCall", "agent.TestEveryHistoryThatATurnLeavesIsTakenByAllProtocols", "internal/conformance.TestDesign001SequenceAndRecovery",
			"internal/conformance.TestBrokenHistoriesAreRepairedBeforeTheyAreSent", "internal/conformance.TestADamagedRecordGivesNoHistoryThatAProviderRefuses"}},
	{"compaction spirals in a small window", "openai/codex#13279 #31351", []string{"agent.TestASmallWindowDoesNotSpiral", "agent.TestALongSessionIsNotCompactedAtEveryStep", "internal/conformance.TestALongTurnStaysInsideASmallWindow"}},
	{"the same files are read again after each compaction", "openai/codex#34322", []string{"internal/conformance.TestReadingTheSameFilesAfterEachCompactionIsStopped"}},
	{"a finished turn is compacted and goes on", "anomalyco/opencode#15533", []string{"internal/conformance.TestAFinishedTurnIsNeitherCompactedNorGoneOnWith"}},
	{"compaction without reduction, for ever", "anomalyco/opencode#27924, NousResearch/hermes-agent#53008, Kilo-Org/kilocode#13317",
		[]string{"agent.TestASummaryThatNeverShrinksIsAskedForTwice", "agent.TestASummaryThatSavesLessThanFivePercentIsAStrikeAndNotTaken", "agent.TestCompactingComesToAnEnd"}},
	{"a flat reserve for the answer", "anomalyco/opencode#45368", []string{"agent.TestTheReserveIsTheOutputCapAndNoFlatNumber"}},
	{"signatures after a switch of the model", "vybestack/llxprt-code#2335, openclaw/openclaw#107221 #120596 #94534, anomalyco/opencode#6418",
		[]string{"internal/conformance.TestASessionSurvivesEverySwitchOfItsModel", "internal/conformance.TestATurnIsHandedOverBetweenAllProtocols", "chaos.TestReasoningGoesBackToItsMaker"}},
	{"reasoning_content is wanted back", "langchain-ai/langchain#37713 #34166, earendil-works/pi#3835, BerriAI/litellm#26395",
		[]string{"internal/conformance.TestDesign000ReasoningTravelsBackAndForthAlsoOverARestart", "internal/wire/openai.TestChatReasoningGoesWhereTheTargetWantsIt", "internal/wire.TestPrepareFiltersReasoning"}},
	{"a stream stalls and nobody notices", "charmbracelet/crush#3178, microsoft/vscode#321432, cline/cline#12954, earendil-works/pi#8331, anthropics/claude-code#25979, openai/codex#30526",
		[]string{"internal/conformance.TestAStreamThatStallsCostsItsClockAndNotTheTurn", "provider.TestEveryClockRunsOutWhenItSays", "script.fault_stall"}},
	{"response.failed is not acted upon", "openai/codex#43140", []string{"internal/conformance.TestAStreamThatStallsCostsItsClockAndNotTheTurn", "internal/wire/openai.TestResponsesStreamsThatFail"}},
	{"keep-alive comments: taken for death, or for progress", "openai/codex#31539 #3229", []string{"internal/conformance.TestAStreamThatStallsCostsItsClockAndNotTheTurn", "provider.TestEveryClockRunsOutWhenItSays"}},
	{"a spent quota is waited for, or seen where there is none", "google-gemini/gemini-cli#10925, preloop/preloop#114, NousResearch/hermes-agent#36276, diegosouzapw/OmniRoute#1767, can1357/oh-my-pi#11689",
		[]string{"internal/conformance.TestAHardQuotaIsToldAtOnceAndARateLimitIsNone", "internal/wire.TestMoneyIsMoneyWhateverTheStatus", "internal/wire.TestDailyQuotasAreFinal", "script.fault_quota"}},
	{"retries multiply", "livekit/agents#5335, caura-ai/caura#859, charmbracelet/fantasy#68",
		[]string{"internal/conformance.TestTheRequestsOfAFailingTurnAddAndDoNotMultiply", "heal.TestNobodyElseBacksOffOrChooses", "provider.TestARequestIsNeverSentTwice"}},
	{"an effect happens twice", "microsoft/agent-framework#3938, GEMISIS/leviath#96, agno-agi/agno#10366, anthropics/anthropic-sdk-python#1749, openai-agents#4254",
		[]string{"agent.TestKilledAtEveryWriteNothingIsLostAndNothingHappensTwice", "agent.TestACallThatWasCutOffIsNeverMadeAgainByTheProgram", "internal/conformance.TestACallOfAStreamThatBreaksDoesNotRunTwice", "script.fault_kill_in_command"}},
	{"a write that was cut off is carried out", "anthropics/claude-code#1236 #45436, FMXExpress/PasClaw#41, can1357/oh-my-pi#11104, ahwurm/localharness#77",
		[]string{"agent.TestNoCallOfAnAnswerThatWasCutIsEverRun", "tool.TestNothingIsLeftBehindWhenWritingFails", "script.fault_cut_call"}},
	{"what the user typed is lost", "anomalyco/opencode#40955, anthropics/claude-code#85603, openai/codex#38395",
		[]string{"agent.TestAnInputWhoseTurnNeverBeganIsNotLost", "agent.TestWhatAHookIsToldOfIsDurable", "agent.TestWhatMissesItsTurnBeginsTheNextOne", "cmd/ninelives/tui.TestWhatCouldNotBeSentIsInTheInputAgain", "script.fault_kill_before_answer"}},
	{"records are interleaved, and one bad line costs the session", "openai/codex#24425, anthropics/claude-code#66175, BaseIntelligence/bounty-challenge#12613",
		[]string{"journal.TestAppendsAtOnceAreNeverInterleaved", "journal.TestManyProcessesShareOneSession", "journal.TestADamagedEntryOfASessionIsLeftOutAndReported", "agent.TestASessionWithAHoleInItsRecordGoesOn"}},
	{"a fallback's smaller window", "can1357/oh-my-pi#7952, openclaw/openclaw#19878, cymoo/lovia#88, openai/codex#30319",
		[]string{"internal/conformance.TestATurnGoesOnAtASmallerWindow", "internal/conformance.TestATurnSurvivesTheWayFromAnthropicToDeepSeekToALocalModel"}},
	{"a loop is seen where there is none", "google-gemini/gemini-cli#5873 #8232 #19953", []string{"agent.TestLoopGuardNeverCriesWolf", "agent.TestPollingBringsNoOldNoticeBack", "script.fault_loop"}},
	{"empty answers and forms that are never met, for ever", "anthropics/claude-code#67311, neuro-san-studio#1169",
		[]string{"internal/conformance.TestAFormThatIsNeverMetComesToAnEnd", "internal/conformance.TestDesign000AnEmptyAnswerIsNudgedTwice", "script.fault_empty"}},
	{"processes are left behind", "earendil-works/pi#3056, multica-ai/multica#5918",
		[]string{"tool.TestAnAgentThatIsKilledLeavesNoOrphanAndATrueRecord", "tool.TestStoppingACallStopsAllThatTheCommandStarted", "tool/mcp.TestServersDieWithTheirParent"}},
	{"files are deleted", "openai/codex#3934, anthropics/claude-code#10077 #85530, MoonshotAI/kimi-cli#2596",
		[]string{"tool.TestTheFloorHoldsInEveryModeProfileAndUnderEveryRule", "tool.TestNoWrapperLiftsTheFloor", "tool.TestDeletingTakesAFileOrAllOfADirectoryAndCanBeTakenBack", "tool.TestWhatACommandChangedIsTakenBackToTheByteAndDoneAgain"}},
	{"MCP servers do not come back", "openai/codex#39990, anthropics/claude-code#36308",
		[]string{"tool/mcp.TestAKilledServerIsStartedAgain", "tool/mcp.TestAServerOverHTTPComesBack", "tool/mcp.TestACallDuringABreakIsUnknown"}},
}

// written finds the tests of a package, and the scripts, by their names.
type written map[string]map[string]bool

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

func (w written) has(t *testing.T, test string) bool {
	t.Helper()
	dot := strings.LastIndexByte(test, '.')
	pkg, name := test[:dot], test[dot+1:]
	if w[pkg] == nil {
		w[pkg] = map[string]bool{}
		pattern := filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go")
		if pkg == "script" {
			pattern = filepath.Join("..", "..", "cmd", "ninelives", "testdata", "script", "*.txtar")
		}
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", pkg, err)
		}
		for _, file := range files {
			if pkg == "script" {
				w[pkg][strings.TrimSuffix(filepath.Base(file), ".txtar")] = true
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
				w[pkg][m[1]] = true
			}
		}
	}
	return w[pkg][name]
}

func TestEveryPromiseOfTheSourceDesignsHasItsTest(t *testing.T) {
	w := written{}
	for _, design := range []map[string][]promise{design000, design001} {
		for heading, promises := range design {
			for _, p := range promises {
				if len(p.tests) == 0 {
					t.Errorf("%s: %s: no test", heading, p.says)
				}
				for _, test := range p.tests {
					if !w.has(t, test) {
						t.Errorf("%s: %s: there is no %s", heading, p.says, test)
					}
				}
			}
		}
	}
}

func TestEveryPublicFailureHasItsTest(t *testing.T) {
	w := written{}
	for _, f := range publicFailures {
		if len(f.tests) == 0 || f.addresses == "" {
			t.Errorf("%s: no test, or no address", f.kind)
		}
		for _, test := range f.tests {
			if !w.has(t, test) {
				t.Errorf("%s (%s): there is no %s", f.kind, f.addresses, test)
			}
		}
	}
}
