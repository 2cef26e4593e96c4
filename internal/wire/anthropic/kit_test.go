package anthropic_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// generous is a target that takes everything the protocol has.
func generous() wire.Target {
	return wire.Target{Candidate: ninelives.Candidate{Provider: "acme", Model: "claude-test", Protocol: ninelives.AnthropicMessages,
		Capabilities: ninelives.Capabilities{Tools: true, Images: true, Files: true, Prefill: true, Schema: ninelives.SchemaNative,
			Replay: ninelives.ReplayRequireOnToolCalls, ReplayField: "thinking"}}}
}

// decodeOptions are those for an answer of the same candidate.
func decodeOptions() wire.DecodeOptions {
	return wire.DecodeOptions{Candidate: generous().Candidate}
}

// different tells where two values begin to differ; nil and empty are alike.
func different(want, got any) string {
	w, g := dump(reflect.ValueOf(want)), dump(reflect.ValueOf(got))
	if w == g {
		return ""
	}
	at := 0
	for at < len(w) && at < len(g) && w[at] == g[at] {
		at++
	}
	at = max(at-80, 0)
	return fmt.Sprintf("want …%.400s\n got …%.400s", w[at:], g[at:])
}

// dump writes a value with what it points to, without fields that are zero.
func dump(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Invalid:
		return "nil"
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return "&" + dump(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf("%q", v.Bytes())
		}
		var b strings.Builder
		for i := range v.Len() {
			fmt.Fprintf(&b, " %s", dump(v.Index(i)))
		}
		return "[" + b.String() + "]"
	case reflect.Struct:
		var b strings.Builder
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() && !(f.Kind() == reflect.Slice && f.Len() == 0) {
				fmt.Fprintf(&b, " %s:%s", v.Type().Field(i).Name, dump(f))
			}
		}
		return v.Type().Name() + "{" + b.String() + " }"
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprintf("%v", v.Interface())
}

// differentJSON compares two requests, apart from what the protocol lets be
// written in two ways.
func differentJSON(want, got []byte) string {
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return err.Error()
	}
	return different(same(w), same(g))
}

// same writes a value in one of the ways that mean the same: a text as a
// block, and what is null, false or empty by default not at all.
func same(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = same(v[i])
		}
	case map[string]any:
		for name, member := range v {
			member = same(member)
			v[name] = member
			switch name {
			case "content", "system":
				if s, ok := member.(string); ok {
					v[name] = []any{map[string]any{"type": "text", "text": s}}
				}
			case "stream", "is_error", "description":
				if member == false || member == "" {
					delete(v, name)
				}
			}
		}
		if v["type"] == "custom" {
			delete(v, "type")
		}
	}
	return v
}

// wiretestVersion is the anthropic_version that a body names.
func wiretestVersion(body []byte) string {
	var v struct {
		Version string `json:"anthropic_version"`
	}
	_ = json.Unmarshal(body, &v)
	return v.Version
}
