package acp

import (
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/tool"
)

func modeOption(current string) string {
	return `{"category":"mode","currentValue":"` + current + `","id":"mode","name":"Permissions","options":[{"description":"Changes and commands are asked for","name":"Ask","value":"ask"},{"description":"Files of the workspace are changed without asking; the rest is asked for","name":"Auto-edit","value":"auto-edit"},{"description":"Nothing is changed: only reading","name":"Plan","value":"plan"},{"description":"Nothing is asked for but what is catastrophic, which is denied","name":"Full","value":"full"}],"type":"select"}`
}

func modelOption(current string) string {
	return `{"category":"model","currentValue":"` + current + `","id":"model","name":"Model","options":[{"name":"One","value":"sim/one"},{"description":"the other one","name":"Two","value":"sim/two"}],"type":"select"}`
}

// A new session says what can be chosen in it, in both forms.
func TestASessionSaysWhatCanBeChosen(t *testing.T) {
	s := newStage(t)
	s.mode = tool.ModePlan
	e := s.connect().hello()
	e.sent("-")
	id := e.newSession()
	got := e.sent(id)
	same(t, got[:1], `{"id":2,"jsonrpc":"2.0","result":{"configOptions":[`+modeOption("plan")+`,`+modelOption("sim/one")+`],`+
		`"models":{"availableModels":[{"modelId":"sim/one","name":"One"},{"description":"the other one","modelId":"sim/two","name":"Two"}],"currentModelId":"sim/one"},`+
		`"modes":{"availableModes":[{"description":"Changes and commands are asked for","id":"ask","name":"Ask"},{"description":"Files of the workspace are changed without asking; the rest is asked for","id":"auto-edit","name":"Auto-edit"},{"description":"Nothing is changed: only reading","id":"plan","name":"Plan"},{"description":"Nothing is asked for but what is catastrophic, which is denied","id":"full","name":"Full"}],"currentModeId":"plan"},"sessionId":"S"}}`)
	if !strings.Contains(got[1], `"available_commands_update"`) {
		t.Errorf("%s", got[1])
	}
	e.leave()
}

func TestTheModeIsSet(t *testing.T) {
	s := newStage(t, chaos.Step{Calls: []chaos.Call{write("a", "a.txt", "a")}}, chaos.Step{Text: "Done."})
	e := s.connect().hello()
	id := e.newSession()
	e.sent(id)
	if _, err := e.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "plan"}); err != nil {
		t.Fatal(err)
	}
	e.wait("config_option_update")
	same(t, e.updates(id), `{"configOptions":[`+modeOption("plan")+`,`+modelOption("sim/one")+`],"sessionUpdate":"config_option_update"}`)
	if _, err := e.ask(id, "Write"); err != nil {
		t.Fatal(err)
	}
	if got := s.read("a.txt"); !strings.HasPrefix(got, "[") {
		t.Errorf("plan mode has written %q", got)
	}
	e.sent(id)
	r, err := e.SetSessionConfigOption(t.Context(), sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: id, ConfigId: "mode", Value: "auto-edit"}})
	if err != nil || len(r.ConfigOptions) != 2 || r.ConfigOptions[0].Select.CurrentValue != "auto-edit" {
		t.Errorf("%+v, %v", r, err)
	}
	e.wait("current_mode_update")
	same(t, e.updates(id), `{"currentModeId":"auto-edit","sessionUpdate":"current_mode_update"}`)
	_, err = e.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "yolo"})
	if got := wantCode(t, err, -32602).Message; got != `the mode "yolo" is unknown: use ask, auto-edit, plan, full` {
		t.Errorf("%q", got)
	}
	e.leave()
}

func TestTheModelIsSetForOneSession(t *testing.T) {
	s := newStage(t)
	e := s.connect().hello()
	first, second := e.newSession(), e.newSession()
	e.sent("-")
	if _, err := e.UnstableSetSessionModel(t.Context(), sdk.UnstableSetSessionModelRequest{SessionId: first, ModelId: "sim/two"}); err != nil {
		t.Fatal(err)
	}
	e.wait("config_option_update")
	same(t, e.updates(first), `{"configOptions":[`+modeOption("full")+`,`+modelOption("sim/two")+`],"sessionUpdate":"config_option_update"}`)
	set := func(config, value string) (sdk.SetSessionConfigOptionResponse, error) {
		return e.SetSessionConfigOption(t.Context(), sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: second, ConfigId: sdk.SessionConfigId(config), Value: sdk.SessionConfigValueId(value)}})
	}
	r, err := set("model", "sim/one")
	if err != nil || r.ConfigOptions[1].Select.CurrentValue != "sim/one" {
		t.Errorf("%+v, %v", r, err)
	}
	same(t, s.switched, string(first)+" sim/two", string(second)+" sim/one")
	_, err = set("model", "sim/three")
	if got := wantCode(t, err, -32602).Message; got != `the model "sim/three" is not one of those that can be chosen` {
		t.Errorf("%q", got)
	}
	_, err = set("colour", "red")
	if got := wantCode(t, err, -32602).Message; got != `the option "colour" is unknown` {
		t.Errorf("%q", got)
	}
	e.leave()
}
