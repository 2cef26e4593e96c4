package acp

import (
	"cmp"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/agent"
)

// ended answers a prompt with how its turn ended.
func (s *session) ended(e agent.Ended) (any, error) {
	reason, err := ending(e)
	if err != nil {
		return nil, err
	}
	if reason == sdk.StopReasonRefusal {
		if e.Message != "" {
			s.think(e.Message)
		}
		// The protocol promises that the next prompt knows nothing of this one.
		if err := s.Session.Rewind(s.server.base, e.Turn); err != nil {
			return nil, fmt.Errorf("the model declined, and its refusal could not be taken out of the conversation: %w", err)
		}
	}
	r := sdk.PromptResponse{StopReason: reason, UserMessageId: nil}
	if e.Usage.Reported != 0 || e.Usage.Estimated {
		in, out := e.Usage.TotalInput(), e.Usage.TotalOutput()
		r.Usage = &sdk.Usage{InputTokens: in, OutputTokens: out, TotalTokens: in + out}
	}
	return r, nil
}

// ending is the stop reason of a turn that came to an end which has one. What
// failed, or was stopped by a guard, is an error and never the end of a turn
// that is done.
func ending(e agent.Ended) (sdk.StopReason, error) {
	switch e.Reason {
	case agent.ReasonComplete:
		return sdk.StopReasonEndTurn, nil
	case agent.ReasonTruncated:
		return sdk.StopReasonMaxTokens, nil
	case agent.ReasonRefused:
		return sdk.StopReasonRefusal, nil
	case agent.ReasonCanceled:
		return sdk.StopReasonCancelled, nil
	case agent.ReasonLimit:
		if e.Limit == agent.LimitIterations {
			return sdk.StopReasonMaxTurnRequests, nil
		}
	}
	line := oneLine(e.Message)
	if e.Fault != nil {
		line = cmp.Or(line, oneLine(e.Fault.Error()))
	}
	data := map[string]any{"reason": e.Reason, "session": e.Session, "turn": e.Turn, "resume": "/continue"}
	if e.Limit != "" {
		data["limit"] = e.Limit
	}
	if e.Fault != nil {
		data["class"] = e.Fault.Class
	}
	return "", &sdk.RequestError{
		Code:    -32603,
		Message: cmp.Or(line, "the turn ended: "+string(e.Reason)) + " – what was done is kept; send /continue to go on",
		Data:    data,
	}
}

// compactedText says what a compaction came to.
func compactedText(c agent.Compaction) string {
	if c.Tier == 0 || c.After >= c.Before {
		return "the conversation could not be made smaller"
	}
	return fmt.Sprintf("the conversation was made smaller: from about %d to %d tokens", c.Before, c.After)
}
