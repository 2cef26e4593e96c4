package mcp

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// What is taken of one result. The agent bounds it further for the model, and
// keeps what it leaves out; what goes beyond this is lost, and said to be.
const (
	maxText   = 4 << 20
	maxImage  = 5 << 20
	maxImages = 10
)

// resultOf makes a result of a server's answer.
func resultOf(what string, r *sdk.CallToolResult) tool.Result {
	var text strings.Builder
	var images []ninelives.Part
	lost := 0
	say := func(s string) {
		s = strings.ToValidUTF8(s, "\ufffd")
		if room := maxText - text.Len(); len(s) > room {
			lost += len(s) - max(0, room)
			s = strings.ToValidUTF8(s[:max(0, room)], "")
		}
		if s == "" {
			return
		}
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		text.WriteString(s)
	}
	picture := func(kind string, data []byte) {
		switch {
		case kind != "image/png" && kind != "image/jpeg" && kind != "image/gif" && kind != "image/webp", len(data) == 0:
			say(fmt.Sprintf("[left out: %s of %d bytes]", oneLine(kind, 60), len(data)))
		case len(data) > maxImage, len(images) == maxImages:
			say(fmt.Sprintf("[left out: an image (%s) of %d bytes; %d images of up to %d bytes are taken]", kind, len(data), maxImages, maxImage))
		default:
			images = append(images, ninelives.Image{MediaType: kind, Data: data})
		}
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			say(c.Text)
		case *sdk.ImageContent:
			picture(c.MIMEType, c.Data)
		case *sdk.AudioContent:
			say(fmt.Sprintf("[left out: %s of %d bytes]", oneLine(c.MIMEType, 60), len(c.Data)))
		case *sdk.ResourceLink:
			say(fmt.Sprintf("[resource %s: %s %s]", oneLine(c.Name, 200), oneLine(c.URI, 500), oneLine(c.Description, 500)))
		case *sdk.EmbeddedResource:
			switch res := c.Resource; {
			case res == nil:
			case res.Text != "":
				say(fmt.Sprintf("[resource %s]\n%s", oneLine(res.URI, 500), res.Text))
			default:
				picture(res.MIMEType, res.Blob)
			}
		}
	}
	if text.Len() == 0 && r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent, json.Deterministic(true)); err == nil {
			say(string(b))
		}
	}
	said := text.String()
	if lost > 0 {
		said += fmt.Sprintf("\n[cut: %d bytes more are lost]", lost)
	}
	if said == "" && len(images) == 0 {
		said = "(no output)"
	}
	res := tool.TextResult(said)
	if r.IsError {
		res = tool.ErrorResult(said)
	}
	if said == "" {
		res.Content = nil
	}
	res.Content = append(res.Content, images...)
	res.Summary = what + ": " + oneLine(said, 80)
	return res
}
