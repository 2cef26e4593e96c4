package acp

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
)

func TestWhatTheUserSends(t *testing.T) {
	dir := filepath.FromSlash("/work place/p")
	text := func(uri, text string) sdk.ContentBlock {
		return sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: uri, Text: text}})
	}
	blob := func(uri, media, data string) sdk.ContentBlock {
		return sdk.ResourceBlock(sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{Uri: uri, MimeType: &media, Blob: data}})
	}
	for name, c := range map[string]struct {
		blocks []sdk.ContentBlock
		want   []ninelives.Part
	}{
		"text": {[]sdk.ContentBlock{sdk.TextBlock("a"), sdk.TextBlock("b")}, []ninelives.Part{ninelives.Text{Text: "ab"}}},
		"links": {
			[]sdk.ContentBlock{sdk.TextBlock("See "), sdk.ResourceLinkBlock("main.go", "file:///work%20place/p/sub/main.go#L3"), sdk.TextBlock(" and "), sdk.ResourceLinkBlock("passwd", "file:///etc/passwd"), sdk.TextBlock(" and "), sdk.ResourceLinkBlock("a\npage", "https://x.example/y")},
			[]ninelives.Part{ninelives.Text{Text: "See @sub/main.go#L3 and @/etc/passwd and [a page](https://x.example/y)"}},
		},
		"embedded": {
			[]sdk.ContentBlock{sdk.TextBlock("Why "), text("file:///work%20place/p/a.md", "```\nx"), sdk.TextBlock("?")},
			[]ninelives.Part{ninelives.Text{Text: "Why @a.md?"}, ninelives.Text{Text: "\n\nContent of a.md, as the editor has it:\n````\n```\nx\n````\n"}},
		},
		"picture": {[]sdk.ContentBlock{sdk.ImageBlock("AQI=", "image/png")}, []ninelives.Part{ninelives.Image{MediaType: "image/png", Data: []byte{1, 2}}}},
		"blobs": {
			[]sdk.ContentBlock{blob("file:///work%20place/p/a.png", "image/png", "AQ=="), blob("zed:///x", "application/pdf", "Ag==")},
			[]ninelives.Part{ninelives.Text{Text: "@a.pngzed:///x"}, ninelives.Image{MediaType: "image/png", Data: []byte{1}}, ninelives.File{Name: "zed:///x", MediaType: "application/pdf", Data: []byte{2}}},
		},
	} {
		got, err := message(c.blocks, dir)
		if err != nil || got.Role != ninelives.RoleUser || !reflect.DeepEqual(got.Parts, c.want) {
			t.Errorf("%s:\n got %#v, %v\nwant %#v", name, got.Parts, err, c.want)
		}
	}
	for want, blocks := range map[string][]sdk.ContentBlock{
		"the prompt is empty":                               {sdk.TextBlock(" \n")},
		"prompt[1]: audio is not supported":                 {sdk.TextBlock("x"), sdk.AudioBlock("AQ==", "audio/wav")},
		"prompt[0]: the data is no base64":                  {sdk.ImageBlock("%", "image/png")},
		"prompt[0]: the image has no data or no mimeType":   {sdk.ImageBlock("", "image/png")},
		"prompt[0]: the resource has neither text nor blob": {sdk.ResourceBlock(sdk.EmbeddedResourceResource{})},
	} {
		if _, err := message(blocks, dir); wantCode(t, err, -32602).Message != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What the editor sends along reaches the model as one message.
func TestEditorContextReachesTheModel(t *testing.T) {
	s := newStage(t, chaos.Step{Text: "I see."})
	e := s.connect().hello()
	id := e.newSession()
	_, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{
		sdk.TextBlock("Look at "), sdk.ResourceLinkBlock("a.go", "file://"+filepath.ToSlash(s.dir)+"/a.go"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file://" + filepath.ToSlash(s.dir) + "/b.go", Text: "package unsaved\n"}}),
		sdk.ImageBlock("iVBORw0KGgo=", "image/png"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	body := string(s.srv.Log()[0].Body)
	for _, want := range []string{"Look at @a.go@b.go", "package unsaved", "Content of b.go"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	e.leave()
}
