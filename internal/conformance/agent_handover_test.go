package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/config"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

// picture is the smallest PNG.
var picture = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa75\x81\x84\x00\x00\x00\x00IEND\xaeB`\x82")

// thinks is a step of a model that thinks and looks at something.
func thinks(n int, id string, more ...chaos.Check) chaos.Step {
	return chaos.Step{Reasoning: fmt.Sprintf("Thought number %d.", n), Calls: []chaos.Call{{ID: id, Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, n)}}, Insist: true, Reject: more}
}

// One turn begins at Anthropic with a picture, signed thinking and tools, goes
// on at DeepSeek, which wants its reasoning back with each call and takes no
// pictures, and ends at a small local model. Each server refuses what the real
// one refuses, and none has anything to refuse. When Anthropic is back, the
// conversation is again taken there, with the thinking that it signed.
func TestATurnSurvivesTheWayFromAnthropicToDeepSeekToALocalModel(t *testing.T) {
	const window = 8000
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		claude, one := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{
			thinks(1, ""), thinks(2, ""), {Error: chaos.Billing}, {Text: "Back, and seen it all again."}})
		strict := []chaos.Check{chaos.MissingReasoning, chaos.Images}
		deepseek, two := simulated(t, "deepseek/deepseek-v4-pro", ninelives.OpenAIChat, []chaos.Step{
			thinks(3, "", strict...), thinks(4, "", strict...), {Error: chaos.Billing}})
		small := chaos.Step{Text: "Seen it all.", Window: window, Reject: []chaos.Check{chaos.Images, chaos.DeveloperRole}}
		last := small
		last.Text, last.Calls, last.Insist = "", []chaos.Call{use("look", `{"n":5}`)}, true
		local, three := simulated(t, "ollama/qwen3:8b", ninelives.OpenAIChat, []chaos.Step{last, small},
			provider.Capabilities(func(c *ninelives.Capabilities) { c.Window, c.MaxOutput, c.Images = window, 500, false }))
		look := gadget{"look", true, func(_ context.Context, c *tool.Call) tool.Result {
			return tool.TextResult(string(c.Arguments) + strings.Repeat(" word", 1800))
		}}
		s := d.opens(agent.New(heal.New(claude, heal.Fallback(deepseek, local)), agent.Tools(look), agent.With(full()), agent.Workspace(d.dir), agent.Journal(d.journal)))
		began := time.Now()
		p := acts(s.Turn(t.Context(), ninelives.Message{Role: ninelives.RoleUser, Parts: []ninelives.Part{
			ninelives.Text{Text: "Look at everything as in this picture."}, ninelives.Image{MediaType: "image/png", Data: picture}}}), nil)
		d.ended(p, agent.ReasonComplete, "Seen it all.")
		equal(t, "nobody had to wait", time.Since(began), 0)
		var served []string
		for _, a := range of[agent.Answered](p) {
			served = append(served, fmt.Sprint(a.Candidate, " ", a.IsFallback))
		}
		equal(t, "served by", served, []string{"anthropic/claude-sonnet-4-6 false", "anthropic/claude-sonnet-4-6 false",
			"deepseek/deepseek-v4-pro true", "deepseek/deepseek-v4-pro true", "ollama/qwen3:8b true", "ollama/qwen3:8b true"})
		accepted(t, one, "billing")
		accepted(t, two, "billing")
		accepted(t, three)
		equal(t, "requests", []int{len(one.Log()), len(two.Log()), len(three.Log())}, []int{3, 3, 2})

		body := func(srv *chaos.Server, i int) string { return string(srv.Log()[i].Body) }
		const placeholder = "[1 attached image(s) not sent: this provider only accepts text"
		equal(t, "Anthropic sees the picture", strings.Contains(body(one, 2), `"type":"image"`), true)
		equal(t, "and its own thinking, signed", []int{strings.Count(body(one, 2), `"signature":"`), strings.Count(body(one, 2), "Thought number")}, []int{2, 2})
		for i := range 3 {
			b := body(two, i)
			equal(t, "DeepSeek is told of the picture", strings.Contains(b, placeholder) && !strings.Contains(b, "image_url"), true)
			equal(t, "and reads no thought of Anthropic's", strings.Contains(b, "Thought number 1.") || strings.Contains(b, "Thought number 2."), false)
			equal(t, "but its own, word for word", strings.Count(b, `"reasoning_content":"Thought number `), i)
			equal(t, "and no signature", strings.Contains(b, "signature"), false)
		}
		for i, e := range three.Log() {
			b := string(e.Body)
			equal(t, "the local model is told of the picture", strings.Contains(b, placeholder) && !strings.Contains(b, "image_url"), true)
			equal(t, "and reads no thought that is signed", strings.Contains(b, "Thought number 1.") || strings.Contains(b, "Thought number 2."), false)
			equal(t, "but what DeepSeek thought in plain words", strings.Contains(b, "Thought number 4."), true)
			equal(t, "the user's words are there", strings.Contains(b, "Look at everything as in this picture."), true)
			within(t, fmt.Sprintf("request %d fits", i), float64(e.Tokens), 1, window)
		}

		// All of it was said.
		said := ""
		for _, n := range streamed[ninelives.Notice](p) {
			if n.Kind == ninelives.NoticeTranslate {
				said += n.Candidate + ": " + n.Text + "\n"
			}
		}
		for _, want := range []string{
			"deepseek/deepseek-v4-pro: signed reasoning of another model was left out (2 part(s)): only its maker can read it",
			"deepseek/deepseek-v4-pro: 1 image(s) were not sent: deepseek/deepseek-v4-pro does not take them there",
			"ollama/qwen3:8b: 1 image(s) were not sent",
			"ollama/qwen3:8b: signed reasoning of another model was left out (2 part(s)): only its maker can read it",
			"ollama/qwen3:8b: the request was made to fit the window of 8000 tokens",
		} {
			equal(t, fmt.Sprintf("it was told that %q in\n%s", want, said), strings.Contains(said, want), true)
		}

		// What is recorded is what was said, whoever said it: nothing was rewritten.
		thoughts := 0
		for _, m := range s.State().Messages() {
			for _, part := range m.Parts {
				if r, ok := part.(ninelives.Reasoning); ok {
					thoughts++
					equal(t, "a thought keeps its maker", r.Provenance.Provider, []string{"", "anthropic", "anthropic", "deepseek", "deepseek"}[thoughts])
				}
			}
		}
		equal(t, "thoughts", thoughts, 4)

		time.Sleep(31 * time.Minute) // the rest of an account without credit is over
		d.ended(d.turn(s, "Once more."), agent.ReasonComplete, "Back, and seen it all again.")
		accepted(t, one, "billing")
		back := body(one, 3)
		equal(t, "Anthropic has its own thoughts again", strings.Count(back, "Thought number"), 2)
		equal(t, "and the picture", strings.Contains(back, `"type":"image"`), true)
	})
}

// Ids go the same way, in whatever form each vendor writes and takes them.
func TestIdsOfCallsAreMappedFromVendorToVendor(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		kimi, one := simulated(t, "moonshot/kimi-k2-thinking", ninelives.OpenAIChat, []chaos.Step{
			thinks(1, "functions.look:0", chaos.MissingReasoning), thinks(2, "functions.look:1", chaos.MissingReasoning), {Error: chaos.Billing}})
		claude, two := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{thinks(3, ""), {Error: chaos.Billing}})
		mistral, three := simulated(t, "mistral/mistral-large-latest", ninelives.OpenAIChat, []chaos.Step{
			{Calls: []chaos.Call{{ID: "aB3456789", Name: "look", Arguments: `{"n":4}`}}, Insist: true, Reject: []chaos.Check{chaos.MistralIDs, chaos.UserAfterTool}},
			{Text: "Seen it all.", Reject: []chaos.Check{chaos.MistralIDs, chaos.UserAfterTool}}})
		look := gadget{"look", true, func(_ context.Context, c *tool.Call) tool.Result {
			return tool.TextResult("seen " + string(c.Arguments))
		}}
		s := d.opens(agent.New(heal.New(kimi, heal.Fallback(claude, mistral)), agent.Tools(look), agent.With(full()), agent.Workspace(d.dir)))
		d.ended(d.turn(s, "Look."), agent.ReasonComplete, "Seen it all.")
		accepted(t, one, "billing")
		accepted(t, two, "billing")
		accepted(t, three)
		ids := map[string]*regexp.Regexp{
			"moonshot":  regexp.MustCompile(`"(?:tool_call_)?id":"(functions\.look:\d)"`),
			"anthropic": regexp.MustCompile(`"(?:tool_use_)?id":"([a-zA-Z0-9_-]+)"`),
			"mistral":   regexp.MustCompile(`"(?:tool_call_)?id":"([a-zA-Z0-9]{9})"`),
		}
		for name, srv := range map[string]*chaos.Server{"moonshot": one, "anthropic": two, "mistral": three} {
			log := srv.Log()
			found := map[string]int{}
			for _, m := range ids[name].FindAllStringSubmatch(string(log[len(log)-1].Body), -1) {
				found[m[1]]++
			}
			want := map[string]int{"moonshot": 2, "anthropic": 3, "mistral": 4}[name]
			equal(t, name+" knows its calls", len(found), want)
			for id, n := range found {
				equal(t, name+": a call and its result have the id "+id, n, 2)
			}
		}
	})
}

// A chain that begins on this machine stays there, whatever happens to it,
// unless the configuration says otherwise. What would leave the machine goes
// through a proxy here, so that it can be counted.
func TestAChainThatBeginsLocallyNeverLeavesTheMachine(t *testing.T) {
	for _, c := range []struct {
		name    string
		consent string
		text    string
		reason  agent.Reason
		outside int
	}{
		{"by default", "", "", agent.ReasonFailed, 0},
		{"with the user's consent", "consent: {allow_remote_fallback: true}\n", "From outside.", agent.ReasonComplete, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := chaos.New(chaos.Scenario{Name: "*", Steps: []chaos.Step{{Error: chaos.Billing}}})
			outside := chaos.New(chaos.Scenario{Name: "*", Steps: []chaos.Step{{Text: "From outside."}}})
			t.Cleanup(broken.Close)
			t.Cleanup(outside.Close)
			home := t.TempDir()
			file := filepath.Join(home, "ninelives.yaml")
			text := fmt.Sprintf("model: {provider: ollama, model: qwen3, base_url: %q}\nfallbackModels: [{provider: openai, model: gpt-4o, base_url: \"http://api.openai.example/v1\"}]\nnetwork: {proxy: %q}\n%s",
				broken.URL()+"/v1", outside.URL(), c.consent)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) {
				v, ok := map[string]string{"HOME": home, "OPENAI_API_KEY": "sk-not-for-anyone", provider.LocalVariable: "off"}[name]
				return v, ok
			}
			set, problems, err := config.LoadNamed(file, env)
			if err != nil {
				t.Fatal(err, problems)
			}
			chain, problems, err := set.Chain(t.Context(), env)
			if err != nil {
				t.Fatal(err, problems)
			}
			for _, m := range chain {
				t.Cleanup(m.(*provider.Model).CloseIdleConnections)
			}
			toldOf := slices.ContainsFunc(problems, func(p config.Problem) bool {
				return strings.Contains(p.Message, "must not leave it unless the configuration allows a remote fallback")
			})
			equal(t, "it is said", toldOf, c.outside == 0)
			d := sits(t, home)
			s := d.opens(d.agent(heal.New(chain[0], heal.Fallback(chain[1:]...)), full()))
			p := d.turn(s, "A private matter.")
			d.ended(p, c.reason, c.text)
			outside.Wait()
			equal(t, "requests that left", len(outside.Log()), c.outside)
			equal(t, "asked on this machine", len(broken.Log()) > 0, true)
			if c.outside == 0 {
				equal(t, "it can be gone on with", p.end.FailedTurn, true)
			}
		})
	}
}

// From each protocol to each other one, and back: calls, results, thoughts and
// pictures of the one are taken by a server of the other that is strict, and
// wants back what it thought.
func TestATurnIsHandedOverBetweenAllProtocols(t *testing.T) {
	vendors := maps.Clone(vendors)
	vendors[ninelives.OpenAIChat] = "deepseek/deepseek-v4-pro" // OpenAI shows no thoughts in this protocol
	for _, from := range protocols {
		for _, to := range protocols {
			if from == to {
				continue
			}
			t.Run(string(from)+" to "+string(to), func(t *testing.T) {
				home := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					d := sits(t, home)
					want := chaos.MissingReasoning
					first, one := simulated(t, vendors[from], from, []chaos.Step{
						thinks(1, "", want), uses(use("look", `{"n":2}`), use("look", `{"n":3}`)), {Error: chaos.Billing}, {Text: "Back.", Reject: []chaos.Check{want}}})
					second, two := simulated(t, vendors[to], to, []chaos.Step{thinks(4, "", want), {Text: "Seen it all.", Reject: []chaos.Check{want}}})
					look := gadget{"look", true, func(_ context.Context, c *tool.Call) tool.Result {
						r := tool.TextResult("seen " + string(c.Arguments))
						if from != ninelives.OpenAIChat { // a chain prefers who can see a picture
							r.Content = append(r.Content, ninelives.Image{MediaType: "image/png", Data: picture})
						}
						return r
					}}
					s := d.opens(d.agent(heal.New(first, heal.Fallback(second)), full(), look))
					d.ended(d.turn(s, "Look."), agent.ReasonComplete, "Seen it all.")
					accepted(t, two)
					time.Sleep(31 * time.Minute)
					d.ended(d.turn(s, "Once more."), agent.ReasonComplete, "Back.")
					accepted(t, one, "billing")
					equal(t, "requests", []int{len(one.Log()), len(two.Log())}, []int{4, 2})
				})
			})
		}
	}
}
