package acp

import (
	"encoding/base64"
	"errors"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	ninelives "github.com/ninelives-ai/ninelives"
)

// message makes the user's message of a prompt. Text and mentions of files stay
// in one text, as they were typed; what the editor sent along follows, each
// piece with its name. A mention is no content: the model reads the file.
func message(blocks []sdk.ContentBlock, dir string) (ninelives.Message, error) {
	var typed strings.Builder
	var more []ninelives.Part
	for i, b := range blocks {
		switch {
		case b.Text != nil:
			typed.WriteString(b.Text.Text)
		case b.ResourceLink != nil:
			typed.WriteString(mention(b.ResourceLink.Uri, b.ResourceLink.Name, dir))
		case b.Resource != nil:
			name, part, err := embedded(b.Resource.Resource, dir)
			if err != nil {
				return ninelives.Message{}, invalid("prompt[%d]: %v", i, err)
			}
			typed.WriteString(name)
			more = append(more, part)
		case b.Image != nil:
			part, err := picture(b.Image)
			if err != nil {
				return ninelives.Message{}, invalid("prompt[%d]: %v", i, err)
			}
			more = append(more, part)
		case b.Audio != nil:
			return ninelives.Message{}, invalid("prompt[%d]: audio is not supported", i)
		}
	}
	m := ninelives.Message{Role: ninelives.RoleUser}
	if text := strings.ToValidUTF8(typed.String(), "\uFFFD"); strings.TrimSpace(text) != "" {
		m.Parts = append(m.Parts, ninelives.Text{Text: text})
	}
	if m.Parts = append(m.Parts, more...); len(m.Parts) == 0 {
		return m, invalid("the prompt is empty")
	}
	return m, nil
}

// mention is a resource as it stands in the text.
func mention(uri, name, dir string) string {
	path := pathOf(uri, dir)
	switch {
	case path != "":
		return "@" + path
	case name == "" || name == uri:
		return uri
	}
	return "[" + oneLine(name) + "](" + uri + ")"
}

// pathOf is the path of a file's address, relative to the workspace where it is
// inside, with the lines that the address names; empty for other addresses.
func pathOf(uri, dir string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return ""
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	path = filepath.FromSlash(path)
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	path = oneLine(filepath.ToSlash(path))
	if u.Fragment != "" {
		path += "#" + oneLine(u.Fragment)
	}
	return path
}

// embedded is a resource that the editor has sent whole.
func embedded(r sdk.EmbeddedResourceResource, dir string) (name string, part ninelives.Part, err error) {
	switch {
	case r.TextResourceContents != nil:
		name = mention(r.TextResourceContents.Uri, "", dir)
		text := strings.ToValidUTF8(r.TextResourceContents.Text, "\uFFFD")
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		what := "\n\nContent of " + strings.TrimPrefix(name, "@") + ", as the editor has it:\n"
		return name, ninelives.Text{Text: what + fence + "\n" + text + fence + "\n"}, nil
	case r.BlobResourceContents != nil:
		blob := r.BlobResourceContents
		data, err := decoded(blob.Blob)
		if err != nil {
			return "", nil, err
		}
		media := ""
		if blob.MimeType != nil {
			media = *blob.MimeType
		}
		name = mention(blob.Uri, "", dir)
		if strings.HasPrefix(media, "image/") {
			return name, ninelives.Image{MediaType: media, Data: data}, nil
		}
		return name, ninelives.File{Name: strings.TrimPrefix(name, "@"), MediaType: media, Data: data}, nil
	}
	return "", nil, errors.New("the resource has neither text nor blob")
}

func picture(b *sdk.ContentBlockImage) (ninelives.Part, error) {
	if b.Data == "" && b.Uri != nil && (strings.HasPrefix(*b.Uri, "https://") || strings.HasPrefix(*b.Uri, "http://")) {
		return ninelives.Image{URL: *b.Uri}, nil
	}
	if b.Data == "" || b.MimeType == "" {
		return nil, errors.New("the image has no data or no mimeType")
	}
	data, err := decoded(b.Data)
	if err != nil {
		return nil, err
	}
	return ninelives.Image{MediaType: b.MimeType, Data: data}, nil
}

func decoded(text string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the data is no base64")
	}
	return data, nil
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
