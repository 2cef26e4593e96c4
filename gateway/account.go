package gateway

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// bytesPerToken is the measure of what is only estimated: 3.7 bytes a token were
// measured on prose and code.
const bytesPerToken = 3.7

// account finds out what the call has used and cost: of the attempt that
// answered what its provider says, of the others what is known of them. What
// nobody told is estimated and marked: the prompt was read where a request may
// be billed, and what had come was written.
func (k *call) account(end ending) {
	st := &k.stats
	if r := end.response; r != nil {
		st.Usage = r.Usage
		if !r.Usage.Has(ninelives.UsageOutput) && r.Degraded == "" && k.truth.cache != string(cacheHit) {
			st.Usage = k.guess(textOf(r))
		}
	} else if end.gone {
		st.Usage = k.guess(k.sent)
	}
	for i := range st.Trail {
		a := &st.Trail[i]
		price := k.price(a.Candidate)
		var used ninelives.Usage
		switch f := k.faults[a.Number]; {
		case a.Number == end.attempt && end.response != nil:
			used = st.Usage
		case end.response != nil && end.response.Continued > 0 && a.Class != "":
			// Its usage is in that of the answer, which goes on with its text.
		case a.Class != "" && f != nil && f.Partial != nil && f.Partial.Usage.Has(ninelives.UsageOutput):
			used = f.Partial.Usage
		case a.Class != "" && (f == nil || f.Billed == ninelives.BilledNo || f.Status >= 400):
		case a.Class != "" && f.Partial != nil:
			used = k.guess(textOf(f.Partial))
		case a.Class != "":
			used = k.guess(0)
		default: // it was left, by us or by the client
			used = k.guess(k.sent)
		}
		a.Cost, a.Estimated, a.Tokens = price.Cost(used), used.Estimated, used.TotalInput()+used.TotalOutput()
	}
	sum, estimated := st.cost()
	if sum > 0 || len(st.Trail) > 0 {
		k.truth.paid(sum, estimated)
	}
}

// spent is what the call has come to, all its attempts together.
func (k *call) spent() spend {
	var s spend
	s.money, s.estimated = k.stats.cost()
	for i := range k.stats.Trail {
		s.tokens += k.stats.Trail[i].Tokens
	}
	return s
}

// guess is the usage of a request with so many bytes of answer.
func (k *call) guess(bytes int) ninelives.Usage {
	return ninelives.Usage{Input: k.size().input, Output: int(float64(bytes) / bytesPerToken), Estimated: true}
}

// price is that of a candidate of this call.
func (k *call) price(name string) ninelives.Price {
	for _, m := range k.way.models {
		if c, ok := ninelives.CandidateOf(m); ok && m.Name() == name {
			return c.Price
		}
	}
	return ninelives.Price{}
}

// textOf counts the bytes of an answer's content.
func textOf(r *ninelives.Response) int {
	n := 0
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case ninelives.Text:
			n += len(p.Text)
		case ninelives.Reasoning:
			n += len(p.Text)
		case ninelives.Refusal:
			n += len(p.Text)
		case ninelives.ToolCall:
			n += len(p.Name) + len(p.Arguments)
		}
	}
	return n
}
