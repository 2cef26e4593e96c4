package chaos

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// words draws one of the legal words of a field, or none.
func words[T ~string](t *rapid.T, field string) T {
	return T(rapid.SampledFrom(append([]string{"", "", ""}, vocabulary[field]...)).Draw(t, field))
}

func seconds(t *rapid.T, name string) time.Duration {
	return time.Duration(rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, name)) * time.Second
}

// Whatever is scripted, an exchange ends with the patience of its client at
// the latest, the log knows its end, and a step without damage says it all.
func TestAnyStepIsCarriedOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		step := Step{
			Drop: words[Drop](rt, "drop"), Error: words[ErrorKind](rt, "error"), End: words[End](rt, "end"), Empty: words[Empty](rt, "empty"),
			ToolFault: words[ToolFault](rt, "tool_fault"), Finish: words[string](rt, "finish"),
			Delay: seconds(rt, "delay"), First: seconds(rt, "first"), Interval: seconds(rt, "interval"), Pause: seconds(rt, "pause"), KeepAlive: seconds(rt, "keep alive"),
			After: rapid.IntRange(0, 70).Draw(rt, "after"), Split: rapid.SampledFrom([]int{0, 0, 1, 1000}).Draw(rt, "split"),
			Malformed: rapid.Bool().Draw(rt, "malformed"), CRLF: rapid.Bool().Draw(rt, "crlf"), Truncate: rapid.SampledFrom([]int{0, 0, 5}).Draw(rt, "truncate"),
			Reasoning: rapid.SampledFrom([]string{"", "Let me see."}).Draw(rt, "reasoning"),
			Omit:      rapid.SliceOfN(rapid.SampledFrom(vocabulary["omit"]), 0, 2).Draw(rt, "omit"),
		}
		if rapid.Bool().Draw(rt, "calls") {
			step.Calls = []Call{{Name: "f", Arguments: `{"a":"0123456789"}`}}
		}
		if step.validate() != nil {
			return
		}
		p := rapid.SampledFrom([]protocol{chat, responses, messages, gemini}).Draw(rt, "protocol")
		stream := rapid.Bool().Draw(rt, "stream")
		var status int
		var got string
		var readErr error
		var entry Entry
		synctest.Test(t, func(t *testing.T) {
			srv := New(one(step)...)
			client := srv.Client()
			client.Timeout = time.Hour
			path, body := request(p, "x", stream, "Hi")
			resp, err := client.Post(MemoryURL+path, "application/json", strings.NewReader(body))
			if err == nil {
				var b []byte
				b, readErr = io.ReadAll(resp.Body)
				resp.Body.Close()
				status, got = resp.StatusCode, string(b)
			}
			srv.Wait()
			if log := srv.Log(); len(log) > 0 {
				entry = log[0]
			}
			srv.Close()
		})
		if entry.Did == "" && !entry.Left || entry.Took > time.Hour {
			rt.Fatalf("the log does not know the end: %+v", entry)
		}
		sound := step.Drop == "" && step.End == "" && !step.Malformed && step.Error == ""
		if !sound {
			return
		}
		if status != 200 || readErr != nil {
			rt.Fatalf("no damage was asked for, but: %d %v", status, readErr)
		}
		if stream && len(step.Omit) == 0 && step.Empty == "" && !marker(p, got) {
			rt.Fatalf("no end marker in %s", got)
		}
	})
}

func marker(p protocol, stream string) bool {
	return strings.Contains(stream, map[protocol]string{
		chat: "data: [DONE]", responses: `"type":"response.`, messages: `"type":"message_stop"`, gemini: `"finishReason":`,
	}[p])
}
