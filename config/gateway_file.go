package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/heal"
)

var (
	orders       = wordsOf(gateway.OrderListed, gateway.OrderWeighted, gateway.OrderLatency, gateway.OrderCost)
	gatewayModes = wordsOf(heal.ModeContinue, heal.ModeHold, heal.ModeFail)
	periods      = []string{"day", "week", "month", "total"}
)

// gatewayFile is what a file may say of the gateway.
type gatewayFile struct {
	Listen   addresses            `json:"listen,omitzero" jsonschema:"Where it listens: host:port or unix:/path, or a list of them. Default: 127.0.0.1:9009."`
	TLS      tlsFiles             `json:"tls,omitzero" jsonschema:"The certificate that it shows; without one it speaks plain HTTP."`
	Insecure *bool                `json:"insecure,omitempty" jsonschema:"Whether it may be reached by other machines without client keys and TLS. Default: false."`
	Keys     []clientKey          `json:"keys,omitempty" jsonschema:"The clients that may ask. Default: everybody on this machine."`
	Routes   map[string]routeFile `json:"routes,omitempty" jsonschema:"Chains of models by the name that clients ask for. The route default, which takes every name that nothing else takes, is model and fallbackModels unless it is set here."`
	Limits   gatewayLimits        `json:"limits,omitzero" jsonschema:"What it holds at a time."`
	Journal  gatewayJournal       `json:"journal,omitzero" jsonschema:"What is kept of calls."`
	Grace    *duration            `json:"grace,omitempty" jsonschema:"How long a call goes on without its client, where the client has sent an Idempotency-Key. Default: 30s."`
}

type tlsFiles struct {
	Cert string `json:"cert,omitempty" jsonschema:"PEM file of the certificate and those between it and its root, absolute or relative to this file."`
	Key  string `json:"key,omitempty" jsonschema:"PEM file of its private key, absolute or relative to this file."`
}

type clientKey struct {
	Name     string       `json:"name,omitempty" jsonschema:"Its name in logs, metrics and the journal."`
	Key      secret       `json:"key,omitzero" jsonschema:"The key itself, best written as ${VARIABLE}."`
	Hash     string       `json:"hash,omitempty" jsonschema:"sha256: and the SHA-256 of the key in hex (ninelives keys new)."`
	Routes   []string     `json:"routes,omitempty" jsonschema:"The routes and models that it may use, with * for any characters. Default: all."`
	Budget   clientBudget `json:"budget,omitzero" jsonschema:"What it may spend."`
	Rate     clientRate   `json:"rate,omitzero" jsonschema:"What it may do in any minute."`
	Priority int          `json:"priority,omitempty" jsonschema:"Added to the route's priority."`
}

type clientBudget struct {
	Money  float64 `json:"money,omitempty" jsonschema:"US dollars."`
	Tokens int     `json:"tokens,omitempty" jsonschema:"Tokens of input and output."`
	Per    string  `json:"per,omitempty" jsonschema:"day, week, month (calendar, UTC) or total. Default: month."`
}

type clientRate struct {
	Requests   int `json:"requests,omitempty" jsonschema:"Requests in a minute."`
	Tokens     int `json:"tokens,omitempty" jsonschema:"Tokens in a minute."`
	Concurrent int `json:"concurrent,omitempty" jsonschema:"Calls that are under way at once."`
}

type routeFile struct {
	Models   []target       `json:"models,omitempty" jsonschema:"Its candidates in order of preference, as in fallbackModels, each with a weight if you like. The route default may leave them out."`
	Match    []string       `json:"match,omitempty" jsonschema:"Further model names that it takes, with * for any characters."`
	Policy   policy         `json:"policy,omitzero" jsonschema:"How failures are healed, over the policy of the whole file."`
	Mode     string         `json:"mode,omitempty" jsonschema:"What becomes of a stream that breaks when the client has seen some of it: continue, hold or fail. Default: continue."`
	Deadline *duration      `json:"deadline,omitempty" jsonschema:"Total time of a call. Default: the policy's."`
	Order    string         `json:"order,omitempty" jsonschema:"Which candidate is asked first: listed, weighted, latency or cost. Default: listed."`
	Sticky   *bool          `json:"sticky,omitempty" jsonschema:"Whether a session stays with the candidate that has served it, for its prompt cache. Default: true."`
	Hedge    *duration      `json:"hedge,omitempty" jsonschema:"Start the next candidate beside one that is silent for so long. Default: off."`
	Continue bool           `json:"continue,omitempty" jsonschema:"Whether an answer that ends at the client's own limit of tokens is continued. Default: false."`
	Cache    cacheFile      `json:"cache,omitzero" jsonschema:"Whole answers that are kept for equal requests. Default: none."`
	Degraded []degradedFile `json:"degraded,omitempty" jsonschema:"What is served when no candidate can answer, in this order."`
	Priority int            `json:"priority,omitempty" jsonschema:"Of its calls in the queues of candidates: higher goes first. Default: 0."`
}

// target is a candidate of a route; the schema alone sees it: routes are read by hand.
type target struct{}

type cacheFile struct {
	Entries int       `json:"entries,omitempty" jsonschema:"How many answers."`
	TTL     *duration `json:"ttl,omitempty" jsonschema:"For how long. Default: 1h."`
}

type degradedFile struct {
	Stale  *staleFile `json:"stale,omitempty" jsonschema:"The last good answer to the same request."`
	Canned string     `json:"canned,omitempty" jsonschema:"This text."`
}

type staleFile struct {
	Entries int       `json:"entries,omitempty" jsonschema:"How many answers are kept for it. Default: 1000."`
	MaxAge  *duration `json:"max_age,omitempty" jsonschema:"The oldest that is served. Default: any."`
}

type gatewayLimits struct {
	Body        *size     `json:"body,omitempty" jsonschema:"Bytes of a request. Default: 32MiB."`
	Headers     *size     `json:"headers,omitempty" jsonschema:"Bytes of its headers. Default: 64KiB."`
	Connections *int      `json:"connections,omitempty" jsonschema:"Default: 4096."`
	InFlight    *int      `json:"in_flight,omitempty" jsonschema:"Calls at a time; further ones are refused with 503. Default: 1024."`
	Memory      *size     `json:"memory,omitempty" jsonschema:"Bytes of request bodies held at a time. Default: 512MiB."`
	ReadTimeout *duration `json:"read_timeout,omitempty" jsonschema:"For a whole request. Default: 60s."`
	Write       *duration `json:"write,omitempty" jsonschema:"How long a client may take none of its stream before it counts as gone. Default: 60s."`
}

type gatewayJournal struct {
	Retention string `json:"retention,omitempty" jsonschema:"How long what was asked and answered is kept: none, until_done, or days such as 30d. Default: 30d."`
	Refuse    *bool  `json:"refuse,omitempty" jsonschema:"Whether calls are refused when the journal cannot be written; else they are served without. Default: false."`
	Off       *bool  `json:"off,omitempty" jsonschema:"Whether no journal is kept at all. Default: false."`
	Key       secret `json:"key,omitzero" jsonschema:"The key that encrypts what is kept, best written as ${VARIABLE}. Default: it is not encrypted."`
}

// addresses are one or several.
type addresses []string

// UnmarshalYAML reads one text or a list of texts.
func (a *addresses) UnmarshalYAML(n ast.Node) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		list = ast.Sequence(n.GetToken(), true)
		list.Values = []ast.Node{n}
	}
	*a = nil
	for _, v := range list.Values {
		switch v := v.(type) {
		case *ast.StringNode:
			*a = append(*a, v.Value)
		case *ast.IntegerNode:
			*a = append(*a, v.GetToken().Value)
		case *ast.MappingNode:
			// In [ ] the parser takes 127.0.0.1:9009 for a setting of its own.
			if len(v.Values) == 1 && !v.IsFlowStyle {
				*a = append(*a, v.Values[0].Key.GetToken().Value+":"+v.Values[0].Value.GetToken().Value)
				continue
			}
			return a.wrong(v)
		default:
			return a.wrong(v)
		}
	}
	return nil
}

func (addresses) wrong(n ast.Node) error {
	return &placed{n.GetToken(), "expected an address like 127.0.0.1:9009 or unix:/run/ninelives.sock, not " + article(n.GetToken())}
}

// size is a number of bytes.
type size int64

// sizeUnits are what a size may end in. KB is 1000 bytes and KiB 1024.
var sizeUnits = map[string]float64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
}

var sizeForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)$`)

// UnmarshalYAML reads "32MB", "32MiB", or a number of bytes.
func (s *size) UnmarshalYAML(n ast.Node) error {
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = strings.TrimSpace(n.Value)
	case *ast.IntegerNode:
		text = n.GetToken().Value
	}
	m := sizeForm.FindStringSubmatch(text)
	if m == nil {
		return &placed{n.GetToken(), fmt.Sprintf("%s is no size: write it like 32MB or 512KiB", article(n.GetToken()))}
	}
	unit, known := sizeUnits[strings.ToUpper(m[2])]
	number, err := strconv.ParseFloat(m[1], 64)
	switch bytes := number * unit; {
	case !known || err != nil:
		return &placed{n.GetToken(), fmt.Sprintf("%s is no size: its unit is B, KB, MB, GB, KiB, MiB or GiB", article(n.GetToken()))}
	case bytes < 1 || bytes > math.MaxInt32*1024:
		return &placed{n.GetToken(), fmt.Sprintf("%s is no size that can be held", article(n.GetToken()))}
	default:
		*s = size(bytes)
	}
	return nil
}
