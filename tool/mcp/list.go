package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// What is taken of a server's list.
const (
	maxTools       = 512
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
	maxName        = 64 // of a tool, as providers take it
)

// list asks for the tools and keeps them.
func (s *server) list(ctx context.Context, l *link) error {
	var found []*sdk.Tool
	if r := l.session.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Tools == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tools = nil // it has resources or prompts alone
		return nil
	}
	for t, err := range l.session.Tools(ctx, nil) {
		if err != nil {
			return s.explain(err)
		}
		if t != nil && t.Name != "" && len(found) < maxTools {
			found = append(found, t)
		} else if len(found) == maxTools {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	found = slices.CompactFunc(found, func(a, b *sdk.Tool) bool { return a.Name == b.Name })
	tools := make([]tool.Tool, 0, len(found))
	for _, t := range found {
		tools = append(tools, s.remote(t))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
	return nil
}

// remote describes a tool of the server.
func (s *server) remote(t *sdk.Tool) *remote {
	description := t.Description
	if description == "" && t.Annotations != nil {
		description = t.Annotations.Title
	}
	if description == "" {
		description = t.Title
	}
	return &remote{
		server: s,
		name:   t.Name,
		spec: tool.Spec{
			Tool: ninelives.Tool{
				Name:        toolName(s.cfg.Name, t.Name),
				Description: cut(strings.ToValidUTF8(description, "\ufffd"), maxDescription),
				Schema:      objectSchema(t.InputSchema),
			},
			ReadOnly: s.cfg.Trust && t.Annotations != nil && t.Annotations.ReadOnlyHint,
			Timeout:  s.cfg.Timeout,
		},
	}
}

// toolName joins server and tool in a form that every provider takes. A name
// that has to be changed gets a piece of its hash, so that two of them never
// become one and none depends on its neighbours.
func toolName(server, name string) string {
	clean := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	full := server + "__" + clean
	if clean == name && len(full) <= maxName {
		return full
	}
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:4])
	return full[:min(len(full), maxName-len(tail))] + tail
}

// objectSchema passes a schema on as that of an object, which arguments always are.
func objectSchema(schema any) []byte {
	empty := []byte(`{"properties":{},"type":"object"}`)
	m, _ := schema.(map[string]any)
	if t, there := m["type"]; m == nil || there && t != "object" {
		return empty
	}
	m["type"] = "object"
	if m["properties"] == nil {
		m["properties"] = map[string]any{}
	}
	out, err := json.Marshal(m, json.Deterministic(true))
	if err != nil || len(out) > maxSchema {
		return empty
	}
	return out
}

// cut ends a text after so many bytes, visibly.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("\n[cut: it has %d bytes]", len(s))
}
