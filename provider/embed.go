package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

var _ ninelives.Embedder = (*Model)(nil)

// maxEmbed is the largest answer with vectors that is read, in bytes: 2,048
// vectors of 3,072 numbers, at 30 bytes a number as OpenAI indents them, fit.
const maxEmbed = 256 << 20

// Embed makes one attempt to turn texts into vectors. It never retries. The
// error is a *ninelives.Fault; Anthropic's protocol has no vectors.
//
// A request that a client sent in OpenAI's protocol goes on in its own bytes,
// and so does its answer. Gemini takes 100 texts a request: more of them go in
// several requests, one after the other, within this one attempt.
func (m *Model) Embed(ctx context.Context, req *ninelives.EmbedRequest) (*ninelives.EmbedResponse, error) {
	c := m.Candidate()
	if fault := unembeddable(c, req); fault != nil {
		return nil, fault
	}
	if c.Protocol != ninelives.Gemini {
		return m.embedOne(ctx, req, req.Texts)
	}
	var whole *ninelives.EmbedResponse
	for texts := range slices.Chunk(req.Texts, gemini.EmbedBatch) {
		part, err := m.embedOne(ctx, req, texts)
		switch {
		case err != nil:
			return nil, err
		case whole == nil:
			whole = part
			continue
		}
		whole.Vectors = append(whole.Vectors, part.Vectors...)
		whole.Usage.Input += part.Usage.Input
		whole.Usage.Extra = ninelives.Extra{} // it would be that of the first
	}
	return whole, nil
}

// unembeddable is why nothing is sent; nil if something is.
func unembeddable(c ninelives.Candidate, req *ninelives.EmbedRequest) *ninelives.Fault {
	f := &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare,
		Candidate: c.Name(), Billed: ninelives.BilledNo, Final: true}
	switch {
	case c.Protocol == ninelives.AnthropicMessages:
		f.Scope = ninelives.ScopeModel
		f.Message, f.Hint = "the protocol of this model has no embeddings", "name a model of another provider"
	case req.Inputs() == 0:
		f.Message = "there is nothing to embed: the request has no input"
	case len(req.Texts) > 0 && len(req.Tokens) > 0:
		f.Message = "inputs are texts or tokens, not both"
	case c.Protocol == ninelives.Gemini && len(req.Tokens) > 0:
		f.Message, f.Hint = "this model takes texts, not tokens", "send the texts"
	default:
		return nil
	}
	return f
}

// embedOne makes one request; texts are those of req that go with it.
func (m *Model) embedOne(caller context.Context, req *ninelives.EmbedRequest, texts []string) (*ninelives.EmbedResponse, error) {
	var fault *ninelives.Fault
	a := attempt{model: m, caller: caller, candidate: m.Candidate(), req: &ninelives.Request{Attempt: req.Attempt},
		yield: func(_ ninelives.Event, err error) bool { fault, _ = err.(*ninelives.Fault); return true }}
	a.codec, a.target = codecs[a.candidate.Protocol], m.endpoint.embedURL(len(texts))
	resp, f := a.embed(req, texts)
	if f != nil {
		a.fail(f) // which keeps the key out of it
		return nil, fault
	}
	resp.Candidate, resp.Attempts = a.candidate.Name(), 1
	if resp.Model == "" {
		resp.Model = a.candidate.Model
	}
	return resp, nil
}

// embed sends the request and reads the answer under the attempt's clocks.
func (a *attempt) embed(req *ninelives.EmbedRequest, texts []string) (*ninelives.EmbedResponse, *ninelives.Fault) {
	if err := a.caller.Err(); err != nil {
		return nil, wire.Transport(a.caller, err, ninelives.PhasePrepare)
	}
	encoded, relayed, err := a.encodeEmbed(req, texts)
	if err != nil {
		return nil, &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare,
			Billed: ninelives.BilledNo, Final: true, Message: "the request cannot be written: " + err.Error(), Err: err}
	}
	a.ctx, a.cancel = context.WithCancelCause(a.caller)
	defer a.cancel(nil)
	hold := &dialing{ctx: a.ctx}
	a.watch = newWatch(clocksFor(a.candidate, a.req, false), a.cancel, hold)
	defer a.watch.end()
	resp, err := a.send(encoded, hold)
	if err != nil {
		return nil, wire.Transport(a.ctx, err, a.watch.at())
	}
	in := &body{ReadCloser: resp.Body, watch: a.watch, room: maxEmbed}
	defer in.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, a.refused(resp, in)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, a.broken(err)
	}
	t := bytes.TrimSpace(text)
	if !rawjson.Valid(t) || t[0] != '{' || rawjson.Get(t, "error") != nil && rawjson.Get(t, "data") == nil {
		f := a.classify(resp, text, true)
		if f.Class == ninelives.ClassUnknown && !rawjson.Valid(t) {
			f.Class, f.Scope, f.Phase, f.Message = ninelives.ClassStreamBroken, ninelives.ScopeModel, a.watch.at(), "the answer is cut or garbled: it is no valid JSON"
		}
		return nil, f
	}
	var answer *ninelives.EmbedResponse
	if a.candidate.Protocol == ninelives.Gemini {
		answer = gemini.DecodeEmbedResponse(t, len(texts))
	} else {
		answer = openai.DecodeEmbedResponse(t, req.Inputs())
	}
	if why := misembedded(req, answer); why != "" {
		return nil, &ninelives.Fault{Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: ninelives.PhaseAnswer,
			Status: resp.StatusCode, Billed: ninelives.BilledYes, Message: why}
	}
	if relayed {
		answer.Raw = text
	}
	return answer, nil
}

// encodeEmbed writes the body of the request: the client's own bytes where the
// server takes them. relayed says that it was so.
func (a *attempt) encodeEmbed(req *ninelives.EmbedRequest, texts []string) (encoded wire.Encoded, relayed bool, err error) {
	switch raw := req.Raw; {
	case a.candidate.Protocol == ninelives.Gemini:
		encoded.Body, err = gemini.EncodeEmbedRequest(req, a.candidate.Model, texts)
	case raw != nil && raw.Protocol == ninelives.OpenAIChat:
		encoded.Body, encoded.Header, relayed = raw.Body, raw.Header, true
		if !a.model.endpoint.deployment {
			encoded.Body = wire.Splice(raw.Body, raw.Model, a.candidate.Model)
		}
	default:
		encoded.Body, err = openai.EncodeEmbedRequest(req, a.candidate.Model)
	}
	return encoded, relayed, err
}

// misembedded says what is wrong with the vectors of an answer. Who stores them
// would not see that one is missing, or that they are of different lengths.
func misembedded(req *ninelives.EmbedRequest, answer *ninelives.EmbedResponse) string {
	length := req.Dimensions
	for i, v := range answer.Vectors {
		kind := rawjson.Kind(v)
		if kind != '[' && kind != '"' {
			return fmt.Sprintf("the answer has no vector for input %d of %d", i+1, len(answer.Vectors))
		}
		n := bytes.Count(v, []byte{','}) + 1
		if kind == '"' {
			n = (len(v) - 2 - bytes.Count(v, []byte{'='})) * 3 / 4 / 4
		}
		if rawjson.Empty(v) {
			return fmt.Sprintf("the vector of input %d is empty", i+1)
		}
		if length == 0 {
			length = n
		}
		if n != length {
			return fmt.Sprintf("the vector of input %d has %d dimensions, and %d are wanted", i+1, n, length)
		}
	}
	return ""
}
