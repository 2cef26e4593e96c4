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
		switch f := k.faults[a.Number]; {
		case a.Number == end.attempt && end.response != nil:
			a.Cost, a.Estimated = price.Cost(st.Usage), st.Usage.Estimated
		case end.response != nil && end.response.Continued > 0 && a.Class != "":
			// Its usage is in that of the answer, which goes on with its text.
		case a.Class != "" && f != nil && f.Partial != nil && f.Partial.Usage.Has(ninelives.UsageOutput):
			a.Cost = price.Cost(f.Partial.Usage)
		case a.Class != "" && (f == nil || f.Billed == ninelives.BilledNo || f.Status >= 400):
		case a.Class != "" && f.Partial != nil:
			a.Cost, a.Estimated = price.Cost(k.guess(textOf(f.Partial))), true
		case a.Class != "":
			a.Cost, a.Estimated = price.Cost(k.guess(0)), true
		default: // it was left, by us or by the client
			a.Cost, a.Estimated = price.Cost(k.guess(k.sent)), true
		}
	}
	sum, estimated := st.cost()
	if sum > 0 || len(st.Trail) > 0 {
		k.truth.paid(sum, estimated)
	}
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
