package wire

import (
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

var pullRE = texts(`try pulling|\bmodel '([^']+)' not found`)

// advice tells the user what to do, where something can be done.
func advice(a Answer, c *complaint, f *ninelives.Fault) string {
	switch f.Class {
	case ninelives.ClassAuth:
		switch {
		case c.challenge:
			return "a bot check stands before the endpoint; check the base URL, or ask its operator to let API clients through"
		case f.Scope == ninelives.ScopeHost:
			return "the provider does not serve this country or region"
		case c.word(clockWords):
			return "check this machine's clock"
		}
		return "check the API key and what it may do"
	case ninelives.ClassBilling:
		if c.word(preconditionWords) {
			return "enable billing at the provider, or use another one"
		}
		return "add credit or raise the spend limit at the provider"
	case ninelives.ClassModelNotFound:
		switch {
		case f.Scope == ninelives.ScopeHost:
			return wrongURL(a.Path)
		case a.Candidate.Local && a.Candidate.Model != "" && c.says(pullRE):
			return "run: ollama pull " + a.Candidate.Model
		case c.says(deploymentTexts):
			return "check the deployment's name; a new one takes up to five minutes"
		}
		return "check the model's name and that this key may use it"
	case ninelives.ClassContextLength:
		if a.Status == 413 && c.html {
			return "a proxy in between limits the size of requests; shorten the conversation or raise its limit"
		}
		if f.Window > 0 && f.Requested > 0 {
			return fmt.Sprintf("shorten the conversation: %d tokens do not fit %d", f.Requested, f.Window)
		}
		return "shorten the conversation or use a model with a larger window"
	case ninelives.ClassFormat:
		if c.html {
			return wrongURL(a.Path)
		}
	}
	return ""
}

var deploymentTexts = texts(`deployment`)

// wrongURL says what is probably wrong with the base URL.
func wrongURL(path string) string {
	switch {
	case strings.Contains(path, "/v1/v1/"):
		return "check the base URL: /v1 is in it twice"
	case path != "" && !strings.Contains(path, "/v1"):
		return "check the base URL: /v1 seems to be missing"
	}
	return "check the base URL: is /v1 missing or doubled?"
}
