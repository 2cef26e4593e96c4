package heal

import (
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
)

// fit is the form of the request for one candidate whose window it does not fit.
type fit struct {
	room int                // what was asked for, in tokens
	req  *ninelives.Request // nil: none is needed, or there is none
}

// tight says that a candidate's window does not hold the request and the
// answer that may be given, and how many tokens of input would leave room for
// it. An answer may be as long as the caller allows, else as the candidate's
// largest, for providers count that against the window before there is an
// answer. A limit out of all proportion to the window takes a part of it; where
// nobody knows, an eighth is left.
func tight(c *ninelives.Candidate, f *Facts) (room int, is bool) {
	reserve := min(c.MaxOutput, c.Window/3)
	if f.MaxTokens > 0 {
		reserve = min(f.MaxTokens, c.Window/2)
	}
	if !windowKnown(c) || f.Input <= c.Window-reserve {
		return 0, false
	}
	if reserve == 0 {
		reserve = c.Window / 8
	}
	return c.Window - reserve, true
}

// fit prepares the form of the request that the candidate can be asked with,
// before anything is told or sent. It reports false where there is none and
// the decision has to be made anew, knowing that.
func (c *call) fit(d Decision) bool {
	at := &c.s.Candidates[d.Candidate]
	room, is := tight(&at.Candidate, &c.s.Facts)
	if !is || c.req.Fit == nil || at.Unfit {
		return true
	}
	if d.Change.Prompt == PromptContinue && c.kept != nil {
		room -= size{text: len(c.kept.text)}.tokens()
	}
	if c.fits == nil {
		c.fits = make([]fit, len(c.s.Candidates))
	}
	if f := &c.fits[d.Candidate]; f.req != nil && f.room == room {
		return true
	}
	c.fits[d.Candidate] = fit{}
	req, err := c.req.Fit(room)
	if err == nil && req != nil && FactsOf(req).Input <= at.Candidate.Window {
		c.fits[d.Candidate] = fit{room, req}
		return true
	}
	why := "what it gave is still larger"
	if err != nil {
		why = err.Error()
	}
	at.Unfit = true
	c.notice(ninelives.Notice{Kind: ninelives.NoticeTranslate, Attempt: c.requests() + 1, Candidate: c.links[d.Candidate].name,
		Text: fmt.Sprintf("the request of about %d tokens cannot be made to fit the window of %d tokens: %s", c.s.Facts.Input, at.Candidate.Window, why)})
	return false
}

// fitted is the request as the candidate is to be asked, before any change.
func (c *call) fitted(i int) *ninelives.Request {
	if c.fits != nil && c.fits[i].req != nil {
		return c.fits[i].req
	}
	return c.req
}

// tellFit tells that the candidate is asked with less than the caller said.
func (c *call) tellFit(i int) {
	if req := c.fitted(i); req != c.req {
		at := &c.s.Candidates[i].Candidate
		c.notice(ninelives.Notice{Kind: ninelives.NoticeTranslate, Attempt: c.requests() + 1, Candidate: c.links[i].name,
			Text: fmt.Sprintf("the request was made to fit the window of %d tokens: about %d tokens instead of %d",
				at.Window, FactsOf(req).Input, c.s.Facts.Input)})
	}
}
