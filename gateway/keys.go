package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
)

// client is who asks: one of the configured keys, or anybody where there are
// none.
type client struct{ Key }

// clients are those who may ask.
type clients struct {
	keys   []client
	anyone client
}

func newClients(keys []Key) *clients {
	c := &clients{keys: make([]client, len(keys))}
	for i, k := range keys {
		c.keys[i] = client{k}
	}
	return c
}

// HashKey is what [Key] keeps of a client's key. It is a plain SHA-256: the
// keys are long and random, so that there is nothing to guess slowly.
func HashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// who finds the client by the credentials of a request, wherever the protocols
// put them: Authorization: Bearer, x-api-key, x-goog-api-key, or ?key= as
// Gemini's clients do. Some send two of them, one of which is a leftover, so
// any that is known will do, in this order. The error is a *refused.
//
// How long it takes does not depend on which key it is or how much of it is
// right: hashes are compared, each with all.
func (c *clients) who(h http.Header, query url.Values) (*client, error) {
	if len(c.keys) == 0 {
		return &c.anyone, nil
	}
	given := credentials(h, query)
	if len(given) == 0 {
		return nil, &refused{Trouble: troubleKey,
			Text: "this gateway asks for a key and the request has none: send it as Authorization: Bearer, x-api-key or x-goog-api-key"}
	}
	found := -1
	for i := len(given) - 1; i >= 0; i-- {
		hash := HashKey(given[i])
		for k := range c.keys {
			equal := subtle.ConstantTimeCompare(hash[:], c.keys[k].Hash[:])
			found = subtle.ConstantTimeSelect(equal, k, found)
		}
	}
	if found < 0 {
		return nil, &refused{Trouble: troubleKey,
			Text: "this gateway does not know the key of the request: use one of the keys in its configuration (a provider's own key is of no use here)"}
	}
	return &c.keys[found], nil
}

// credentials are what a request shows, at most one of each kind.
func credentials(h http.Header, query url.Values) []string {
	var given []string
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = append(given, strings.TrimSpace(token))
	}
	given = append(given, h.Get("X-Api-Key"), h.Get("X-Goog-Api-Key"), query.Get("key"))
	n := 0
	for _, g := range given {
		if g != "" {
			given[n] = g
			n++
		}
	}
	return given[:n]
}

// may says that the client may use what goes by this name, a route or a model.
func (c *client) may(name string) bool {
	if len(c.Routes) == 0 {
		return true
	}
	for _, pattern := range c.Routes {
		if wild(pattern, name) {
			return true
		}
	}
	return false
}

// mayUse says that the client may have its call go where it would: by the name
// of the route, or by that of the model if this is what the route was chosen
// for. Who may use a model may use what stands in for it on its route. A name
// that nobody knows ends at the default route, and gives no right to that.
func (c *client) mayUse(ch choice) bool {
	switch ch.by {
	case byTarget:
		return c.may(ch.route.Name) || c.may(ch.given) || c.may(nameOf(ch.route.Targets[ch.first].Model))
	case byPattern, byOpen:
		return c.may(ch.route.Name) || c.may(ch.given)
	}
	return c.may(ch.route.Name)
}

// mayFallBack says that the other targets of the route may stand in. Those of
// the default route, behind a model that is in no route, are only for who may
// use that route as well.
func (c *client) mayFallBack(ch choice) bool { return ch.by != byOpen || c.may(ch.route.Name) }

// forbidden is what a client is told who may not.
func forbidden(ch choice) *refused {
	text := "the key of this request may not use the route " + shownName(ch.route.Name)
	if ch.given != "" && ch.given != ch.route.Name {
		text = "the key of this request may not use " + shownName(ch.given) + ", which the route " + shownName(ch.route.Name) + " would serve"
	}
	return &refused{Trouble: troubleForbidden, Text: text + ": ask for a model that it may use (GET /v1/models lists them), or have it allowed in the gateway's configuration"}
}
