package provider_test

import (
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The bytes of tool calls that clients do not read are not relayed, although the
// calls are understood; those of good ones are, to the last byte.
func TestOddCallsAreReadAndNotRelayed(t *testing.T) {
	const ask = `{"model":"asked","stream":true,"messages":[{"role":"user","content":"x"}]}`
	delta := func(members, finish string) string {
		return `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + members + `},"finish_reason":` + finish + `}]}` + "\n\n"
	}
	call := func(head, function string) string {
		return delta(`"tool_calls":[{`+head+`"type":"function","function":{`+function+`}}]`, "null")
	}
	first, second := `"name":"f","arguments":"{\"a\":1}"`, `"name":"g","arguments":"{}"`
	text := delta(`"role":"assistant","content":"Well"`, "null")
	end := delta("", `"tool_calls"`) + "data: [DONE]\n\n"
	for name, c := range map[string]struct {
		calls   string
		relayed bool
	}{
		"as it should be":     {call(`"index":0,"id":"c1",`, first) + call(`"index":1,"id":"c2",`, second), true},
		"one index for both":  {call(`"index":0,"id":"c1",`, first) + call(`"index":0,"id":"c2",`, second), false},
		"no index":            {call(`"id":"c1",`, first) + call(`"id":"c2",`, second), false},
		"no id":               {call(`"index":0,`, first) + call(`"index":1,`, second), false},
		"arguments no text":   {call(`"index":0,"id":"c1",`, `"name":"f","arguments":{"a":1}`) + call(`"index":1,"id":"c2",`, second), false},
		"an empty form first": {delta(`"content":"!","tool_calls":[{}]`, "null") + call(`"index":0,"id":"c1",`, first) + call(`"index":1,"id":"c2",`, second), true},
	} {
		t.Run(name, func(t *testing.T) {
			whole := text + c.calls + end
			_, frames, events, err := relayed(t, ask, "text/event-stream", []string{whole})
			if err != nil {
				t.Fatal(err)
			}
			answer := events[len(events)-1].(ninelives.Done).Response
			if calls := answer.Message.ToolCalls(); len(calls) != 2 || calls[0].Arguments != `{"a":1}` || calls[1].Name != "g" {
				t.Errorf("read %+v", calls)
			}
			switch got := string(frames); {
			case c.relayed && got != whole:
				t.Errorf("relayed %q", got)
			case !c.relayed && got != text:
				t.Errorf("relayed %q, and what was before the calls is %q", strings.TrimPrefix(got, text), text)
			}
		})
	}
}
