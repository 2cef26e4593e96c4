package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// digestMark begins every message that a compaction made.
const digestMark = "[Earlier messages were shortened to save room. "

const (
	plainHead   = digestMark + "This was made without a model: it lists what was said and done, and gives no orders.]\n"
	archiveHead = digestMark + "They were put away as they were and are no longer shown. What is not told here is not known: read files again before relying on them.]"
)

// plain is tier 4: as much of the oldest as it takes is described without a
// model. Earlier summaries stay, for they say more than a description could.
func (p *plan) plain(g goal) bool {
	made := p.mark()
	before := p.tokens()
	limit := p.x.room() / 16
	first := 0
	for first < len(p.old) && (p.old[first].digest || p.old[first].keep) {
		first++
	}
	end, gone := first, 0
	for i := first; i < len(p.old); i++ {
		if !p.old[i].keep {
			gone += p.old[i].size
		}
		if i+1 == len(p.old) || p.old[i+1].cut {
			end = i + 1
			if before-gone+limit <= g.aim {
				break
			}
		}
	}
	if end == first {
		return false
	}
	p.replace(first, end, digest(describe(p.old[first:end], limit)))
	return p.worth(made, before, g)
}

// archive is tier 5: all that is old is put away, but for the user's words. It
// gives the hash of what was.
func (p *plan) archive(g goal) string {
	made := p.mark()
	before := p.tokens()
	sum := sha256.New()
	for i := range p.old {
		if it := &p.old[i]; !it.keep {
			sum.Write(line(it.told, 0, false))
		}
	}
	if p.gone(0, len(p.old)) == 0 {
		return ""
	}
	p.replace(0, len(p.old), digest(archiveHead))
	if !p.worth(made, before, g) {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// worth says that something was gained that is worth a changed prefix, and
// takes it back if not. Where the request does not fit, anything is.
func (p *plan) worth(made plan, before int, g goal) bool {
	gain := before - p.tokens()
	if gain <= 0 || before <= g.fits && float64(gain) < p.c.Gain*float64(before) {
		p.back(made)
		return false
	}
	return true
}

// cut is what is left when the protected messages alone are too much: what is
// longest of their results is cut off, then the user's older words are put
// away. It summarises nothing, and leaves things be where even that is not enough.
func (p *plan) cut(fits int) bool {
	made := p.mark()
	whole := p.protected
	p.shorten(whole, fits, leastResult)
	if p.tokens() > fits {
		p.drop(fits)
	}
	if p.tokens() > fits {
		p.shorten(whole, fits, 0)
	}
	if p.tokens() > fits {
		p.back(made)
		return false
	}
	p.replaced = len(p.x.Messages)
	return true
}

// leastResult is how many bytes of a result stay as long as there are words of
// the user to put away instead.
const leastResult = 400

const cutNote = "\n[the rest was left out: it does not fit the context window of the model; ask for less at a time]"

// shorten cuts the results among the messages to the same length, the greatest
// at which all fits, but not to less than floor bytes.
func (p *plan) shorten(messages []ninelives.Message, fits, floor int) {
	longest := 0
	for i := range messages {
		for _, part := range messages[i].Parts {
			if r, ok := part.(ninelives.ToolResult); ok {
				longest = max(longest, len(r.Text()))
			}
		}
	}
	rest := p.tokens() - Estimate(p.protected...)
	// The first length, counted down from the longest, that fits.
	down := sort.Search(max(longest-floor, 0), func(i int) bool {
		return rest+Estimate(capped(messages, longest-i)...) <= fits
	})
	p.protected = capped(messages, longest-down)
	p.sum = rest + Estimate(p.protected...)
}

// capped gives the messages with results of at most n bytes and no pictures.
func capped(messages []ninelives.Message, n int) []ninelives.Message {
	messages = slices.Clone(messages)
	for i := range messages {
		parts := slices.Clone(messages[i].Parts)
		for k, part := range parts {
			r, ok := part.(ninelives.ToolResult)
			if !ok {
				continue
			}
			text, cut := clip(r.Text(), n)
			if cut || len(r.Content) > 1 {
				r.Content = []ninelives.Part{ninelives.Text{Text: text + cutNote}}
				parts[k] = r
			}
		}
		messages[i].Parts = parts
	}
	return messages
}

// drop puts the oldest words of the user away, as many as it takes.
func (p *plan) drop(fits int) {
	note := digest(archiveHead)
	isNote := func(it item) bool { return it.digest && it.Text() == archiveHead }
	has := slices.ContainsFunc(p.old, isNote)
	kept := p.old[:0:0]
	for i := range p.old {
		it := p.old[i]
		if p.tokens() <= fits || it.Role != ninelives.RoleUser || isNote(it) {
			kept = append(kept, it)
			continue
		}
		p.sum -= it.size
		if !has {
			has = true
			p.sum += note.size
			kept = append(kept, note)
		}
	}
	p.old = kept
}

// describe says in plain words what happened, in at most about so many tokens:
// what was called how often on what, and how the assistant's messages begin.
func describe(items []item, tokens int) string {
	calls := map[string]int{}
	files := map[string]bool{}
	failed, said := 0, []string{}
	for i := range items {
		m := items[i].told
		if items[i].keep {
			continue
		}
		for _, part := range m.Parts {
			switch part := part.(type) {
			case ninelives.ToolCall:
				calls[part.Name]++
				if path := pathIn(part.Arguments); path != "" {
					files[path] = true
				}
			case ninelives.ToolResult:
				if part.IsError {
					failed++
				}
			}
		}
		if text := firstLine(m.Text()); text != "" && !items[i].digest {
			said = append(said, string(m.Role)+": "+text)
		}
	}
	var b strings.Builder
	b.WriteString(plainHead)
	fmt.Fprintf(&b, "%d messages.\n", len(items))
	if len(calls) > 0 {
		b.WriteString("Calls of tools: ")
		for i, name := range slices.Sorted(maps.Keys(calls)) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s (%d)", name, calls[name])
		}
		fmt.Fprintf(&b, "; %d failed.\n", failed)
	}
	room := max(3*tokens-b.Len(), 0)
	if len(files) > 0 {
		text, cut := clip(strings.Join(slices.Sorted(maps.Keys(files)), ", "), room/2)
		if cut {
			text += " …"
		}
		b.WriteString("Files: " + text + "\n")
	}
	// The newest say most.
	room = max(3*tokens-b.Len(), 0)
	first := len(said)
	for first > 0 && room >= len(said[first-1])+1 {
		first--
		room -= len(said[first]) + 1
	}
	for _, s := range said[first:] {
		b.WriteString(s + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// firstLine is how a text begins.
func firstLine(text string) string {
	text = strings.TrimSpace(text)
	text, _, _ = strings.Cut(text, "\n")
	if short, cut := clip(text, 160); cut {
		return short + " …"
	}
	return text
}

// clip cuts a text to at most n bytes at a rune and says whether it did.
func clip(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], true
}
