package journal

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	ninelives "github.com/ninelives-ai/ninelives"
)

// An event of a call is written in two parts: a head, which says what happened,
// and a content, which says what was said. A content can be sealed and can be
// removed; the head stays as it is.
//
//	1 | length of the head | head: JSON | content
//	content: length of the JSON | JSON | bytes as they are
//
// Lengths are varints. The events of the first two versions are JSON alone, so
// they begin with a brace.
const formHeaded = 1

// RawCall is a request in a client's own bytes.
type RawCall struct {
	Protocol ninelives.Protocol
	// Path is the path and the query of the request's URL.
	Path string
	Body []byte
	// Header holds the header fields that belong to the request
	// (anthropic-beta, …). Those that sound like a credential are not kept.
	Header map[string]string
}

type (
	// mark is what every head has.
	mark struct {
		// Seal is the key that the content is sealed with; empty if it is not.
		Seal string `json:"seal,omitzero"`
		// Removed is when the content was removed; zero if it is there.
		Removed time.Time `json:"removed,omitzero"`
	}
	callHead struct {
		Source  string            `json:"source,omitzero"`
		Labels  map[string]string `json:"labels,omitzero"`
		Client  string            `json:"client,omitzero"`
		Repeat  string            `json:"repeat,omitzero"`
		Public  string            `json:"public,omitzero"`
		Resumes string            `json:"resumes,omitzero"`
		Owner   string            `json:"owner"`
		mark
	}
	callContent struct {
		Title    string             `json:"title,omitzero"`
		Request  *ninelives.Request `json:"request,omitzero"`
		Raw      bool               `json:"raw,omitzero"` // the bytes are a request
		Protocol ninelives.Protocol `json:"protocol,omitzero"`
		Path     string             `json:"path,omitzero"`
		Header   map[string]string  `json:"header,omitzero"`
	}
	endHead struct {
		State     State           `json:"state"`
		Reason    ninelives.Class `json:"reason,omitzero"`
		Status    int             `json:"status,omitzero"`
		Public    string          `json:"public,omitzero"`
		Attempts  []attempt       `json:"attempts,omitzero"`
		Usage     ninelives.Usage `json:"usage,omitzero"`
		Cost      float64         `json:"cost,omitzero"`
		Estimated bool            `json:"estimated,omitzero"`
		mark
	}
	endContent struct {
		Response *ninelives.Response `json:"response,omitzero"`
		Fault    *ninelives.Fault    `json:"fault,omitzero"`
		Error    string              `json:"error,omitzero"`
		Partial  *ninelives.Response `json:"partial,omitzero"`
		Raw      bool                `json:"raw,omitzero"` // the bytes are the answer
	}
	attempt struct {
		Attempt
		TookNS int64 `json:"took_ns,omitzero"`
	}
	// The first versions wrote these, as JSON alone.
	begun struct {
		Call
		Owner string `json:"owner"`
	}
	resumed struct {
		By string `json:"by"`
	}
)

// stored and told are the attempts with their durations as numbers, and back.
func stored(attempts []Attempt) (all []attempt) {
	for _, a := range attempts {
		all = append(all, attempt{a, int64(a.Took)})
	}
	return all
}

func told(attempts []attempt) (all []Attempt) {
	for _, a := range attempts {
		a.Took = time.Duration(a.TookNS)
		all = append(all, a.Attempt)
	}
	return all
}

var errForm = errors.New("its parts do not fit together")

// part writes a part with its length before it.
func part(dst, p []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(p))), p...)
}

// cut takes a part off the front.
func cut(data []byte) (p, rest []byte, err error) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return nil, nil, errForm
	}
	end := size + int(n)
	return data[size:end:end], data[end:], nil
}

// seal encodes an event of a call; its number is given when it is written.
func (j *Journal) seal(stream, kind string, at time.Time, head any, m *mark, content any, raw []byte) (event, error) {
	e := event{stream: stream, at: at, kind: kind}
	if j.sealer != nil {
		m.Seal = j.sealer.id
	}
	h, err := json.Marshal(head, form)
	if err != nil {
		return e, err
	}
	c, err := json.Marshal(content, form)
	if err != nil {
		return e, err
	}
	size := 1 + 2*binary.MaxVarintLen64 + len(h) + len(c) + len(raw)
	if j.sealer == nil {
		e.data = part(append(make([]byte, 0, size), formHeaded), h)
		e.data = append(part(e.data, c), raw...)
		return e, nil
	}
	plain := append(part(make([]byte, 0, size), c), raw...)
	e.data = part(append(make([]byte, 0, size+j.sealer.aead.Overhead()), formHeaded), h)
	e.data = j.sealer.aead.Seal(e.data, nil, plain, e.bound(h))
	return e, nil
}

// bound is what a sealed content is bound to: nobody can put it into another
// call, another event or behind another head.
func (e event) bound(head []byte) []byte {
	b := append(make([]byte, 0, 64+len(head)), e.stream...)
	b = append(append(append(b, ' '), e.kind...), ' ')
	b = binary.BigEndian.AppendUint64(b, uint64(e.at.UnixMilli()))
	return append(b, head...)
}

// headed says that the event has a head, and whether it is of this version.
func (e event) headed() bool { return len(e.data) > 0 && e.data[0] == formHeaded }

// unseal decodes an event that has a head. Without an error, only a content
// that was removed is left out. One that cannot be opened is an ErrSealed, and
// the head has been read.
func (j *Journal) unseal(e event, head any, m *mark, content any) (raw []byte, err error) {
	h, rest, err := cut(e.data[1:])
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(h, head, form); err != nil {
		return nil, err
	}
	if !m.Removed.IsZero() {
		return nil, nil
	}
	if m.Seal != "" {
		aead, err := j.keys.find(m.Seal)
		if err != nil {
			return nil, err
		}
		if rest, err = aead.Open(nil, nil, rest, e.bound(h)); err != nil {
			return nil, errChanged
		}
	}
	c, raw, err := cut(rest)
	if err != nil {
		return nil, err
	}
	return raw, json.Unmarshal(c, content, form)
}

// stripped is the event without its content. Of one that is not as it was
// written nothing is kept.
func (e event) stripped(whole bool, now time.Time) (event, error) {
	var head []byte
	var err error
	switch {
	case !whole || e.kind == eventNotice:
		head = []byte(`{}`)
	case e.headed():
		head, _, err = cut(e.data[1:])
	default:
		head, err = e.oldHead()
	}
	if err != nil {
		return e, err
	}
	removed, err := json.Marshal(mark{Removed: now.UTC()}, form)
	if err != nil {
		return e, err
	}
	// Both are objects, and the first has no such member yet.
	joined := append(make([]byte, 0, len(head)+len(removed)), head[:len(head)-1]...)
	if len(head) > len(`{}`) {
		joined = append(joined, ',')
	}
	joined = append(joined, removed[1:]...)
	e.data = part([]byte{formHeaded}, joined)
	return e, nil
}

// oldHead makes a head of an event of the first versions.
func (e event) oldHead() ([]byte, error) {
	switch e.kind {
	case eventCall:
		var b begun
		if err := json.Unmarshal(e.data, &b, form); err != nil {
			return nil, err
		}
		return json.Marshal(callHead{Source: b.Source, Labels: b.Labels, Resumes: b.Resumes, Owner: b.Owner}, form)
	case eventEnd:
		var o Outcome
		if err := json.Unmarshal(e.data, &o, form); err != nil {
			return nil, err
		}
		state, reason := o.state()
		return json.Marshal(endHead{State: state, Reason: reason}, form)
	}
	return []byte(`{}`), nil
}

// strippable says whether the event has a content that can be removed.
func (e event) strippable() bool {
	return slices.Contains([]string{eventCall, eventNotice, eventEnd}, e.kind)
}
