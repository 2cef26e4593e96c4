package tool

import (
	"bytes"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// textOf gives the text of a body, in UTF-8.
func textOf(u *url.URL, contentType string, body []byte) (string, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(contentType), ";")
	}
	isHTML := kind == "text/html" || kind == "application/xhtml+xml"
	if !isHTML && !textual(kind) {
		return "", fmt.Errorf("is %s (%s), which is no text", visible.EscapedLine(kind), size(int64(len(body))))
	}
	enc, _, _ := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	decoded, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return "", fmt.Errorf("cannot be read as %s", visible.EscapedLine(contentType))
	}
	decoded = bytes.TrimPrefix(decoded, bom)
	if binary(decoded) {
		return "", fmt.Errorf("says that it is %s, but is binary (%s)", visible.EscapedLine(kind), size(int64(len(body))))
	}
	if !isHTML {
		return strings.ToValidUTF8(string(decoded), "\ufffd"), nil
	}
	return markdown(u, decoded), nil
}

// textual tells the media types that are given as they are.
func textual(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") {
		return kind != "image/svg+xml"
	}
	switch kind {
	case "application/json", "application/x-ndjson", "application/jsonl", "application/xml", "application/javascript",
		"application/x-javascript", "application/yaml", "application/x-yaml", "application/toml", "application/x-sh", "application/sql":
		return true
	}
	return false
}

// What is made Markdown: the time that takes grows faster than a page, and its
// depth counts most.
const (
	markdownBytes = 1 << 20
	markdownDepth = 200
	markdownLists = 20 // lists and quotations in each other, each of which indents the lines
)

// flat tells whether a page is not nested too deeply.
func flat(n *html.Node, depth, lists int) bool {
	switch n.Data {
	case "ul", "ol", "blockquote":
		lists++
	}
	if depth > markdownDepth || lists > markdownLists {
		return false
	}
	for c := range n.ChildNodes() {
		if !flat(c, depth+1, lists) {
			return false
		}
	}
	return true
}

// markCells puts a bar between the cells of a table and a line end behind each
// row. A real grid is not drawn: a small page can ask for one without end.
func markCells(doc *html.Node) {
	var rows [][]*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "tr" {
			var cells []*html.Node
			for c := range n.ChildNodes() {
				if c.Type == html.ElementNode {
					cells = append(cells, c)
				}
			}
			rows = append(rows, cells)
		}
	}
	for _, cells := range rows {
		for i, c := range cells {
			if i < len(cells)-1 {
				c.AppendChild(&html.Node{Type: html.TextNode, Data: " | "})
			} else {
				c.AppendChild(&html.Node{Type: html.ElementNode, Data: "br", DataAtom: atom.Br})
			}
		}
	}
}

// absolute makes the links of a page lead where they lead from there.
func absolute(doc *html.Node, u *url.URL) {
	for n := range doc.Descendants() {
		for i, a := range n.Attr {
			if n.Data == "a" && a.Key == "href" || n.Data == "img" && a.Key == "src" {
				if to, err := u.Parse(strings.TrimSpace(a.Val)); err == nil {
					n.Attr[i].Val = to.String()
				}
			}
		}
	}
}

// markdown makes Markdown of a page, its links absolute. A page that is too
// large or too deeply nested becomes plain text.
func markdown(u *url.URL, body []byte) string {
	var title, out string
	if len(body) <= markdownBytes {
		if doc, err := html.Parse(bytes.NewReader(body)); err == nil && flat(doc, 0, 0) {
			title = titleOf(doc) // before the head is taken away
			markCells(doc)
			absolute(doc, u)
			// Nothing is escaped: the text is read, not rendered.
			c := converter.NewConverter(
				converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin()),
				converter.WithEscapeMode(converter.EscapeModeDisabled),
			)
			if text, err := c.ConvertNode(doc); err == nil {
				out = string(text)
			}
		}
	}
	if out == "" {
		out = bareText(body)
	}
	out = strings.TrimSpace(strings.ToValidUTF8(out, "\ufffd"))
	if out == "" {
		out = "[the page has no text; it is perhaps made by scripts, which are not run]"
	}
	if title != "" {
		out = "Title: " + title + "\n\n" + out
	}
	return out
}

// bareText is the text of a page alone, a line for each run of it.
func bareText(body []byte) string {
	var b strings.Builder
	hidden := ""
	for z := html.NewTokenizer(bytes.NewReader(body)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if text := strings.Join(strings.Fields(string(z.Text())), " "); text != "" && hidden == "" {
				b.WriteString(text + "\n")
			}
		case html.StartTagToken:
			if name, _ := z.TagName(); hidden == "" && (string(name) == "script" || string(name) == "style") {
				hidden = string(name)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == hidden {
				hidden = ""
			}
		}
	}
}

// titleOf finds the title of a page.
func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
			return strings.Join(strings.Fields(n.FirstChild.Data), " ")
		}
	}
	return ""
}
