package acp

import (
	"context"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/tool"
)

// What can be chosen in a session: its permission mode and its model. The
// protocol has two forms of that, of which editors know one or both: modes and
// models, and the newer options of configuration.
const (
	optionMode  = "mode"
	optionModel = "model"
)

// modeTexts say what the modes mean.
var modeTexts = map[tool.Mode][2]string{
	tool.ModeAsk:      {"Ask", "Changes and commands are asked for"},
	tool.ModeAutoEdit: {"Auto-edit", "Files of the workspace are changed without asking; the rest is asked for"},
	tool.ModePlan:     {"Plan", "Nothing is changed: only reading"},
	tool.ModeFull:     {"Full", "Nothing is asked for but what is catastrophic, which is denied"},
}

// choices are what can be chosen and what is.
func (s *session) choices() (*sdk.SessionModeState, *sdk.SessionModelState, []sdk.SessionConfigOption) {
	current := s.Session.Status().Mode
	modes := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(current)}
	var values sdk.SessionConfigSelectOptionsUngrouped
	for _, m := range tool.Modes() {
		name, text := modeTexts[m][0], modeTexts[m][1]
		modes.AvailableModes = append(modes.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m), Name: name, Description: &text})
		values = append(values, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m), Name: name, Description: &text})
	}
	options := []sdk.SessionConfigOption{choice(optionMode, "Permissions", sdk.SessionConfigOptionCategoryMode, string(current), values)}
	models := s.models()
	if len(models) == 0 {
		return modes, nil, options
	}
	s.mu.Lock()
	model := s.model
	s.mu.Unlock()
	state := &sdk.SessionModelState{CurrentModelId: sdk.ModelId(model)}
	values = nil
	for _, m := range models {
		var text *string
		if m.Description != "" {
			text = &m.Description
		}
		state.AvailableModels = append(state.AvailableModels, sdk.ModelInfo{ModelId: sdk.ModelId(m.ID), Name: m.Name, Description: text})
		values = append(values, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m.ID), Name: m.Name, Description: text})
	}
	return modes, state, append(options, choice(optionModel, "Model", sdk.SessionConfigOptionCategoryModel, model, values))
}

// models are those to choose from, with the present one among them.
func (s *session) models() []Model {
	if s.Switch == nil {
		return nil
	}
	list := s.Models
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model != "" && !slices.ContainsFunc(list, func(m Model) bool { return m.ID == s.model }) {
		list = append([]Model{{ID: s.model, Name: s.model}}, list...)
	}
	return list
}

func choice(id, name string, c sdk.SessionConfigOptionCategory, current string, values sdk.SessionConfigSelectOptionsUngrouped) sdk.SessionConfigOption {
	o := sdk.NewSessionConfigOptionSelect(sdk.SessionConfigValueId(current), sdk.SessionConfigSelectOptions{Ungrouped: &values})
	o.Select.Id, o.Select.Name, o.Select.Category = sdk.SessionConfigId(id), name, &c
	return o
}

// mode sets the permission mode.
func (s *session) mode(ctx context.Context, name string) error {
	m := tool.Mode(name)
	if !slices.Contains(tool.Modes(), m) {
		var names []string
		for _, m := range tool.Modes() {
			names = append(names, string(m))
		}
		return invalid("the mode %q is unknown: use %s", oneLine(name), strings.Join(names, ", "))
	}
	return s.Session.SetMode(ctx, m)
}

// change sets the model of the turns to come.
func (s *session) change(ctx context.Context, id string) error {
	if !slices.ContainsFunc(s.models(), func(m Model) bool { return m.ID == id }) {
		return invalid("the model %q is not one of those that can be chosen", oneLine(id))
	}
	if err := s.Switch(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	s.model = id
	s.mu.Unlock()
	return nil
}

func (s *server) setMode(ctx context.Context, p sdk.SetSessionModeRequest) (any, func(), error) {
	one, err := s.find(p.SessionId)
	if err != nil {
		return nil, nil, err
	}
	if err := one.mode(ctx, string(p.ModeId)); err != nil {
		return nil, nil, err
	}
	return sdk.SetSessionModeResponse{}, one.changed, nil
}

func (s *server) setModel(ctx context.Context, p sdk.UnstableSetSessionModelRequest) (any, func(), error) {
	one, err := s.find(p.SessionId)
	if err != nil {
		return nil, nil, err
	}
	if err := one.change(ctx, string(p.ModelId)); err != nil {
		return nil, nil, err
	}
	return sdk.UnstableSetSessionModelResponse{}, one.changed, nil
}

// changed tells editors that show the options of what was set in the other form.
func (s *session) changed() {
	_, _, options := s.choices()
	s.update(sdk.SessionUpdate{ConfigOptionUpdate: &sdk.SessionConfigOptionUpdate{ConfigOptions: options}})
}

func (s *server) setOption(ctx context.Context, p sdk.SetSessionConfigOptionRequest) (any, func(), error) {
	if p.ValueId == nil {
		return nil, nil, invalid("the options of a session are chosen by a value of text")
	}
	one, err := s.find(p.ValueId.SessionId)
	if err != nil {
		return nil, nil, err
	}
	value := string(p.ValueId.Value)
	var then func()
	switch p.ValueId.ConfigId {
	case optionMode:
		err = one.mode(ctx, value)
		then = func() {
			one.update(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(value)}})
		}
	case optionModel:
		err = one.change(ctx, value)
	default:
		err = invalid("the option %q is unknown", oneLine(string(p.ValueId.ConfigId)))
	}
	if err != nil {
		return nil, nil, err
	}
	_, _, options := one.choices()
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: options}, then, nil
}
