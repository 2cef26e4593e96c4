package chaos

import (
	"strconv"
	"strings"
)

// OpenAI Responses.

// responsesRun writes the events of one answer, numbered.
type responsesRun struct {
	a      *answer
	frames []frame
	items  []string // finished output items
}

func (r *responsesRun) add(kind frameKind, event, fields string) {
	r.frames = append(r.frames, frame{kind, event,
		`{"type":"` + event + `","sequence_number":` + strconv.Itoa(len(r.frames)) + `,` + fields + `}`})
}

// object is the response object in one of its states.
func (a *answer) responsesObject(status, output, extra string) string {
	s := `{"id":"resp_` + a.id + `","object":"response","created_at":` + strconv.FormatInt(a.created, 10) + `,"status":"` + status +
		`","model":` + quote(a.model) + `,"output":` + output + `,"parallel_tool_calls":true,"tool_choice":"auto","tools":[],` + extra
	if status == "in_progress" {
		return s + `"usage":null}`
	}
	return s + `"usage":{"input_tokens":` + strconv.Itoa(a.input) + `,"input_tokens_details":{"cached_tokens":` + strconv.Itoa(a.scripted.Cached) + `},"output_tokens":` + strconv.Itoa(a.output()) +
		`,"output_tokens_details":{"reasoning_tokens":` + strconv.Itoa(a.thought()) + `},"total_tokens":` + strconv.Itoa(a.input+a.output()) + `}}`
}

// final is the last state: completed, or incomplete with its reason.
func (a *answer) responsesFinal(output string) (event, object string) {
	switch a.finish {
	case "length":
		return "response.incomplete", a.responsesObject("incomplete", output, `"error":null,"incomplete_details":{"reason":"max_output_tokens"},`)
	case "content_filter":
		return "response.incomplete", a.responsesObject("incomplete", output, `"error":null,"incomplete_details":{"reason":"content_filter"},`)
	}
	return "response.completed", a.responsesObject("completed", output, `"error":null,"incomplete_details":null,`)
}

func (a *answer) reasoningItem(status string) string {
	summary := `[]`
	if status == "completed" {
		summary = `[{"type":"summary_text","text":` + quote(strings.Join(a.reasoning, "")) + `}]`
	}
	return `{"id":"rs_` + a.id + `","type":"reasoning","summary":` + summary + `,"encrypted_content":` + quote(a.proof) + `}`
}

func (a *answer) messageItem(status string) string {
	content := `[]`
	if status != "in_progress" {
		content = `[` + a.messagePart(strings.Join(append(a.refusal, a.text...), "")) + `]`
	}
	return `{"id":"msg_` + a.id + `","type":"message","status":"` + status + `","role":"assistant","content":` + content + `}`
}

func (a *answer) messagePart(said string) string {
	if len(a.refusal) > 0 {
		return `{"type":"refusal","refusal":` + quote(said) + `}`
	}
	return `{"type":"output_text","text":` + quote(said) + `,"annotations":[]}`
}

func (a *answer) callItem(i int, c made, status, args string) string {
	callID := `"call_id":` + quote(c.ID) + `,`
	if a.fault == MissingID {
		callID = ``
	}
	return `{"id":"fc_` + a.id + `_` + strconv.Itoa(i) + `","type":"function_call","status":"` + status + `",` + callID + `"name":` + quote(c.Name) + `,"arguments":` + args + `}`
}

func (a *answer) itemStatus() string {
	if a.finish == "length" {
		return "incomplete"
	}
	return "completed"
}

func responsesStream(a *answer) []frame {
	r := &responsesRun{a: a}
	switch a.empty {
	case EmptyBlank:
		return nil
	case EmptyNull, EmptyNone, EmptyDone:
		output := `[]`
		if a.empty == EmptyNull {
			output = `null`
		}
		if a.empty != EmptyDone {
			r.add(frameStart, "response.created", `"response":`+a.responsesObject("in_progress", `[]`, ""))
		}
		event, object := a.responsesFinal(output)
		r.add(frameFinish, event, `"response":`+object)
		return r.frames
	}
	r.add(frameStart, "response.created", `"response":`+a.responsesObject("in_progress", `[]`, ""))
	r.add(frameStart, "response.in_progress", `"response":`+a.responsesObject("in_progress", `[]`, ""))
	if len(a.reasoning) > 0 {
		r.reasoning()
	}
	if len(a.refusal)+len(a.text) > 0 {
		r.message()
	}
	for i, c := range a.calls {
		r.call(i, c)
	}
	event, object := a.responsesFinal(`[` + strings.Join(r.items, ",") + `]`)
	r.add(frameFinish, event, `"response":`+object)
	return r.frames
}

// item frames one output item: added, its inside, done.
func (r *responsesRun) item(id, added, done string, inside func(at string)) {
	index := `"output_index":` + strconv.Itoa(len(r.items))
	r.add(frameOther, "response.output_item.added", index+`,"item":`+added)
	inside(`"item_id":"` + id + `",` + index)
	r.add(frameOther, "response.output_item.done", index+`,"item":`+done)
	r.items = append(r.items, done)
}

func (r *responsesRun) reasoning() {
	r.item("rs_"+r.a.id, r.a.reasoningItem("in_progress"), r.a.reasoningItem("completed"), func(at string) {
		at += `,"summary_index":0`
		whole := quote(strings.Join(r.a.reasoning, ""))
		r.add(frameOther, "response.reasoning_summary_part.added", at+`,"part":{"type":"summary_text","text":""}`)
		for _, w := range r.a.reasoning {
			r.add(frameToken, "response.reasoning_summary_text.delta", at+`,"delta":`+quote(w))
		}
		r.add(frameOther, "response.reasoning_summary_text.done", at+`,"text":`+whole)
		r.add(frameOther, "response.reasoning_summary_part.done", at+`,"part":{"type":"summary_text","text":`+whole+`}`)
	})
}

func (r *responsesRun) message() {
	r.item("msg_"+r.a.id, r.a.messageItem("in_progress"), r.a.messageItem(r.a.itemStatus()), func(at string) {
		at += `,"content_index":0`
		event, field, words := "response.output_text", "text", r.a.text
		if len(r.a.refusal) > 0 {
			event, field, words = "response.refusal", "refusal", r.a.refusal
		}
		r.add(frameOther, "response.content_part.added", at+`,"part":`+r.a.messagePart(""))
		for _, w := range words {
			r.add(frameToken, event+".delta", at+`,"delta":`+quote(w))
		}
		whole := strings.Join(words, "")
		r.add(frameOther, event+".done", at+`,"`+field+`":`+quote(whole))
		r.add(frameOther, "response.content_part.done", at+`,"part":`+r.a.messagePart(whole))
	})
}

func (r *responsesRun) call(i int, c made) {
	args, value := c.Arguments, r.a.arguments(c)
	switch r.a.fault {
	case DoubleEncoded:
		args = quote(args)
	case NullArgs:
		args = ""
	}
	id := "fc_" + r.a.id + "_" + strconv.Itoa(i)
	r.item(id, r.a.callItem(i, c, "in_progress", `""`), r.a.callItem(i, c, r.a.itemStatus(), value), func(at string) {
		for _, f := range fragments(args) {
			r.add(frameToken, "response.function_call_arguments.delta", at+`,"delta":`+quote(f))
		}
		r.add(frameOther, "response.function_call_arguments.done", at+`,"arguments":`+quote(args))
	})
}

func responsesWhole(a *answer) string {
	switch a.empty {
	case EmptyBlank:
		return ""
	case EmptyNull:
		_, object := a.responsesFinal(`null`)
		return object
	}
	var items []string
	if len(a.reasoning) > 0 {
		items = append(items, a.reasoningItem("completed"))
	}
	if len(a.refusal)+len(a.text) > 0 {
		items = append(items, a.messageItem(a.itemStatus()))
	}
	for i, c := range a.calls {
		items = append(items, a.callItem(i, c, a.itemStatus(), a.arguments(c)))
	}
	_, object := a.responsesFinal(`[` + strings.Join(items, ",") + `]`)
	return object
}

func responsesFail(r reported, a *answer) frame {
	code := r.code
	if code == "" {
		code = r.typ
	}
	object := a.responsesObject("failed", `[]`, `"error":{"code":`+quote(code)+`,"message":`+quote(r.message)+`},"incomplete_details":null,`)
	return frame{frameFinish, "response.failed", `{"type":"response.failed","sequence_number":0,"response":` + object + `}`}
}
