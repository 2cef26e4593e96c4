package hookcmd

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

// TestAnAgentHeedsItsHooks runs an agent whose hooks forbid one of two writes,
// and write down what they are told.
func TestAnAgentHeedsItsHooks(t *testing.T) {
	dir, notes := t.TempDir(), t.TempDir()
	save := func(p agent.HookPoint) agent.CommandHook {
		return agent.CommandHook{On: p, Run: []string{"save=" + filepath.Join(notes, string(p))}}
	}
	deny := beforeTool("err=not that one", "exit=2")
	deny.Match = "delete_file"
	after := agent.CommandHook{On: agent.PointAfterTool, Match: "write_file", Run: []string{"out=mind the tests"}}
	commands := []agent.CommandHook{deny, after}
	for _, p := range agent.HookPoints() {
		commands = append(commands, save(p))
	}
	h, warnings := hooks(t, Options{Directory: dir}, commands...)

	srv := chaos.New(chaos.Scenario{Name: "m", Steps: []chaos.Step{
		{Calls: []chaos.Call{
			{ID: "call_1", Name: "write_file", Arguments: `{"path":"a.txt","content":"nine lives\n"}`},
			{ID: "call_2", Name: "delete_file", Arguments: `{"path":"keep.txt"}`},
		}},
		{Text: "done"},
	}})
	defer srv.Close()
	candidate, err := provider.Open("openai/m", provider.BaseURL(srv.URL()+"/v1"), provider.Key(provider.NewSecret("k")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "keep.txt"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := tool.OpenWorkspace(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	set := agent.DefaultSettings()
	set.Permissions.Mode, set.Permissions.Profile = tool.ModeFull, tool.ProfileTrusted
	session, err := agent.New(heal.New(candidate), agent.With(set), agent.Hooks(h), agent.Workspace(dir), agent.Tools(tool.Files(ws)...)).Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range session.Turn(context.Background(), ninelives.UserText("Write a, delete keep.")) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := e.(agent.Ended); ok && end.Reason != agent.ReasonComplete {
			t.Errorf("%+v", end)
		}
	}
	id := session.ID()
	if err := session.Close(); err != nil {
		t.Error(err)
	}

	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "nine lives\n" {
		t.Errorf("%q %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "keep.txt")); err != nil || string(text) != "kept" {
		t.Errorf("the forbidden call was made: %q %v", text, err)
	}
	srv.Wait()
	var asked []string
	for _, m := range session.State().Messages() {
		for _, p := range m.Parts {
			if r, ok := p.(ninelives.ToolResult); ok {
				asked = append(asked, r.Name+": "+r.Text())
			}
		}
		if m.Role == ninelives.RoleUser {
			asked = append(asked, "user: "+m.Text())
		}
	}
	all := strings.Join(asked, "\n")
	for _, want := range []string{"blocked by the hook " + name() + ": not that one", "mind the tests"} {
		if !strings.Contains(all, want) {
			t.Errorf("the model was not told %q:\n%s", want, all)
		}
	}
	if *warnings != nil {
		t.Errorf("%q", *warnings)
	}

	told := map[string]map[string]any{}
	files, err := os.ReadDir(notes)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(notes, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var in map[string]any
		if err := json.Unmarshal(text, &in); err != nil {
			t.Fatal(err)
		}
		told[f.Name()] = in
		events = append(events, f.Name())
		if in["event"] != f.Name() || in["session"] != id {
			t.Errorf("%s was told %v", f.Name(), in)
		}
	}
	want := []string{"after_iteration", "after_model", "after_tool", "before_iteration", "before_model", "before_tool", "session_end", "session_start", "turn_end", "turn_start"}
	if !slices.Equal(events, want) {
		t.Errorf("%q, want %q", events, want)
	}
	if in := told["turn_start"]; in["input"] != "Write a, delete keep." || in["turn"] != 1.0 {
		t.Errorf("%v", in)
	}
	if in := told["before_tool"]; in["tool"] != "write_file" || !reflect.DeepEqual(in["arguments"], map[string]any{"path": "a.txt", "content": "nine lives\n"}) {
		t.Errorf("%v", in)
	}
	if end, _ := told["turn_end"]["end"].(map[string]any); end["reason"] != "complete" || end["text"] != "done" || !reflect.DeepEqual(end["changed"], []any{"a.txt"}) {
		t.Errorf("%v", told["turn_end"])
	}
}
