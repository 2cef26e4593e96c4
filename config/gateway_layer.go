package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
)

// gatewaySet is what the files say of the gateway. What is wrong in it is kept
// for those who start one: nobody else needs its variables and its files.
type gatewaySet struct {
	file     gatewayFile // without keys and routes
	keys     []keySet
	routes   []routeSet // in the order of the files
	wrong    []Problem
	warnings []Problem
}

type keySet struct {
	clientKey
	hash   [sha256.Size]byte
	where  Problem
	routes []Problem // where each of Routes stands
}

type routeSet struct {
	routeFile
	name     string
	targets  []targetSet
	degraded []degradedFile // an empty one is the word unavailable
	where    Problem
	match    []Problem // where each of Match stands
}

type targetSet struct {
	ref
	weight float64
}

// layerGateway puts a file's gateway section over what is there: settings one
// by one, routes by name, the keys as a whole.
func (c *Config) layerGateway(s *source, n ast.Node) {
	g := &c.gateway
	if _, null := n.(*ast.NullNode); null {
		return
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		g.wrong = append(g.wrong, s.at(n, "gateway: expected settings of its own, not %s", article(n.GetToken())))
		return
	}
	if twice := s.twice(m); twice != nil {
		g.wrong = append(g.wrong, twice...)
		return
	}
	for _, pair := range m.Values {
		c.setAt("gateway."+pair.Key.GetToken().Value, s.at(pair.Key, ""))
	}
	if routes := cut(m, "routes"); routes != nil {
		c.layerRoutes(s, routes)
	}
	if keys := cut(m, "keys"); keys != nil {
		c.layerKeys(s, keys)
	}
	if len(m.Values) == 0 {
		return
	}
	wrong := s.decode(m, &g.file)
	if wrong == nil {
		wrong = append(g.file.check(s, m), negatives(s, m)...)
	}
	g.wrong = append(g.wrong, wrong...)
}

// check finds what is no value for its setting, and makes paths whole.
func (f *gatewayFile) check(s *source, n ast.Node) (problems []Problem) {
	if has(n, "listen") {
		var listen addresses
		for i, text := range f.Listen {
			address, err := parseListen(text, s.beside)
			if err != nil {
				problems = append(problems, s.at(element(valueOf(n, "listen"), i), "listen: %s", err))
				continue
			}
			listen = append(listen, address)
		}
		f.Listen = listen
	}
	if has(n, "tls") {
		if f.TLS.Cert == "" || f.TLS.Key == "" {
			problems = append(problems, s.at(valueOf(n, "tls"), "tls: it takes both, cert and key, each a PEM file"))
		} else {
			f.TLS = tlsFiles{Cert: s.beside(f.TLS.Cert), Key: s.beside(f.TLS.Key)}
		}
	}
	journal := valueOf(n, "journal")
	if _, _, err := parseRetention(f.Journal.Retention); err != nil {
		problems = append(problems, s.at(valueOf(journal, "retention"), "journal: %s", err))
	}
	if key := f.Journal.Key.Reveal(); key != "" && len(key) < leastKey {
		problems = append(problems, s.at(valueOf(journal, "key"), "journal: a key of fewer than %d characters can be guessed: make one with openssl rand -hex 32", leastKey))
	}
	return problems
}

// leastKey is how many characters a key must have that nobody guesses.
const leastKey = 16

// has reports that a mapping has a setting.
func has(n ast.Node, name string) bool { return valueOf(n, name) != n }

// layerKeys reads the keys; those of an earlier file are replaced.
func (c *Config) layerKeys(s *source, n ast.Node) {
	g := &c.gateway
	g.keys = nil
	if _, null := n.(*ast.NullNode); null {
		return
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		g.wrong = append(g.wrong, s.at(n, "keys: expected a list, like [{name: laptop, hash: …}]: ninelives keys new makes one"))
		return
	}
	for _, v := range list.Values {
		plain := has(v, "key") && !refers(valueOf(v, "key"))
		var key keySet
		wrong := s.decode(v, &key.clientKey)
		if wrong == nil {
			wrong = append(key.check(s, v), negatives(s, v)...)
		}
		if wrong != nil {
			g.wrong = append(g.wrong, wrong...)
			continue
		}
		key.where = s.at(v, "")
		for i := range key.Routes {
			key.routes = append(key.routes, s.at(element(valueOf(v, "routes"), i), ""))
		}
		for _, other := range g.keys {
			if other.Name == key.Name {
				g.wrong = append(g.wrong, s.at(valueOf(v, "name"), "keys: two keys have the name %q: their limits and lines could not be told apart", key.Name))
			}
			if other.hash == key.hash {
				g.wrong = append(g.wrong, s.at(v, "keys: %q is the same key as %q: make one for each client with ninelives keys new", key.Name, other.Name))
			}
		}
		if plain && IsProject(s.name) {
			g.warnings = append(g.warnings, s.at(valueOf(v, "key"), "keys: the key %q stands in a project's file for everybody who reads it: "+
				"write its hash instead (ninelives keys hash), or take it from a variable (key: ${NAME})", key.Name))
		}
		if text := key.Key.Reveal(); text != "" && len(text) < leastKey {
			g.warnings = append(g.warnings, s.at(valueOf(v, "key"), "keys: the key %q has fewer than %d characters and can be guessed: make one with ninelives keys new", key.Name, leastKey))
		}
		key.Key = secret{} // its hash is all that is needed
		g.keys = append(g.keys, key)
		c.setAt("gateway.keys."+key.Name, key.where)
	}
}

// check finds what is wrong with a key, and makes its hash.
func (k *keySet) check(s *source, n ast.Node) (problems []Problem) {
	wrong := func(n ast.Node, format string, args ...any) { problems = append(problems, s.at(n, format, args...)) }
	if !isName(k.Name) {
		wrong(valueOf(n, "name"), "keys: each needs a name of at most %d characters, such as laptop", maxName)
	}
	switch {
	case k.Key.Empty() && k.Hash == "":
		wrong(n, "keys: %q has no key: ninelives keys new makes one and prints its hash", k.Name)
	case !k.Key.Empty() && k.Hash != "":
		wrong(valueOf(n, "key"), "keys: key and hash are both set: keep the hash")
	case !k.Key.Empty():
		k.hash = sha256.Sum256([]byte(k.Key.Reveal()))
	default:
		sum, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(k.Hash), hashPrefix))
		if err != nil || len(sum) != sha256.Size || !strings.HasPrefix(strings.TrimSpace(k.Hash), hashPrefix) {
			wrong(valueOf(n, "hash"), "keys: the hash of %q is none: it is %s and 64 hexadecimal digits, as ninelives keys hash prints it", k.Name, hashPrefix)
			break
		}
		k.hash = [sha256.Size]byte(sum)
	}
	return append(problems, words(s, valueOf(n, "budget"), word{"per", k.Budget.Per, periods})...)
}

const hashPrefix = "sha256:"

// HashOfKey is a client's key as the setting gateway.keys has its hash.
func HashOfKey(key string) string { return hashPrefix + hashOf([]byte(key)) }

// isName reports that something can be called so in a line.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
}

// layerRoutes reads the routes, each by itself.
func (c *Config) layerRoutes(s *source, n ast.Node) {
	g := &c.gateway
	if _, null := n.(*ast.NullNode); null {
		return
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		g.wrong = append(g.wrong, s.at(n, "routes: expected routes by name, like fast: {models: [groq, openai/gpt-5.4]}"))
		return
	}
	for _, pair := range m.Values {
		r, wrong := s.route(pair)
		c.setAt("gateway.routes."+r.name, r.where)
		if wrong != nil {
			g.wrong = append(g.wrong, wrong...)
		}
		// A broken one keeps its place, so that nothing else takes its names.
		if i := slices.IndexFunc(g.routes, func(other routeSet) bool { return other.name == r.name }); i >= 0 {
			g.routes[i] = r
		} else {
			g.routes = append(g.routes, r)
		}
	}
}

// defaultRoute is the route that takes what nothing else takes.
const defaultRoute = "default"

func (s *source) route(pair *ast.MappingValueNode) (routeSet, []Problem) {
	r := routeSet{name: pair.Key.GetToken().Value, where: s.at(pair.Key, "")}
	m, ok := pair.Value.(*ast.MappingNode)
	if !ok {
		return r, []Problem{s.at(pair.Value, "route %q: expected settings of its own, like {models: [groq, openai/gpt-5.4]}", r.name)}
	}
	var problems []Problem
	wrong := func(n ast.Node, format string, args ...any) {
		problems = append(problems, s.at(n, "route %q: "+format, append([]any{r.name}, args...)...))
	}
	if !isName(r.name) || strings.Contains(r.name, "*") {
		wrong(pair.Key, "clients ask for it by its name: at most %d characters, without blanks and *", maxName)
	}
	models, degraded := cut(m, "models"), cut(m, "degraded")
	if models == nil && r.name != defaultRoute {
		wrong(pair.Key, "it needs models, like models: [groq, openai/gpt-5.4]")
	}
	if models != nil {
		targets, p := s.targets(models, r.name)
		r.targets, problems = targets, append(problems, p...)
	}
	if degraded != nil {
		list, p := s.degraded(degraded, r.name)
		r.degraded, problems = list, append(problems, p...)
	}
	if p := s.decode(m, &r.routeFile); p != nil {
		return r, append(problems, p...)
	}
	problems = append(problems, words(s, m, word{"mode", r.Mode, gatewayModes}, word{"order", r.Order, orders})...)
	problems = append(problems, r.Policy.check(s, valueOf(m, "policy"))...)
	if policy := valueOf(m, "policy"); policy != ast.Node(m) {
		if r.Policy.Mode == "restart" {
			wrong(valueOf(policy, "mode"), "no client can unsee what it has seen: use one of %s", strings.Join(gatewayModes, ", "))
		}
	}
	problems = append(problems, negatives(s, m)...)
	for i, pattern := range r.Match {
		at := element(valueOf(m, "match"), i)
		r.match = append(r.match, s.at(at, ""))
		if !isName(pattern) {
			wrong(at, "%q matches nothing: write a model's name, with * for any characters", pattern)
		}
	}
	if r.Cache.TTL != nil && r.Cache.Entries == 0 {
		wrong(valueOf(m, "cache"), "a cache needs its number of entries, like cache: {entries: 1000}")
	}
	return r, problems
}

// targets reads the candidates of a route: models, each with a weight if its
// settings name one.
func (s *source) targets(n ast.Node, route string) (targets []targetSet, problems []Problem) {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return nil, []Problem{s.at(n, "route %q: expected a list of models, like [fast, openai/gpt-5.4]", route)}
	}
	for _, v := range list.Values {
		t := targetSet{}
		where := s.at(v, "")
		if m, ok := v.(*ast.MappingNode); ok {
			if weight := cut(m, "weight"); weight != nil {
				p := s.decode(weight, &t.weight)
				if p == nil && !(t.weight > 0) {
					p = []Problem{s.at(weight, "route %q: a weight is a share above 0: leave the model out if it is to have none", route)}
				}
				problems = append(problems, p...)
			}
			if len(m.Values) == 1 && m.Values[0].Key.GetToken().Value == "model" {
				v = m.Values[0].Value // {model: NAME, weight: 2}
			}
		}
		r, p := s.ref(v)
		problems = append(problems, p...)
		if p == nil {
			r.where = where
			t.ref = r
			targets = append(targets, t)
		}
	}
	return targets, problems
}

// degraded reads what a route serves when no candidate can answer.
func (s *source) degraded(n ast.Node, route string) (list []degradedFile, problems []Problem) {
	const forms = "stale: {entries: 1000, max_age: 1h}, canned: TEXT, or unavailable"
	values, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, []Problem{s.at(n, "route %q: degraded: expected a list of %s", route, forms)}
	}
	for i, v := range values.Values {
		var d degradedFile
		if word, ok := v.(*ast.StringNode); ok && word.Value == "unavailable" {
			if i < len(values.Values)-1 {
				problems = append(problems, s.at(v, "route %q: degraded: nothing is served after unavailable: put it last", route))
			}
			list = append(list, d)
			continue
		}
		if _, ok := v.(*ast.MappingNode); !ok {
			problems = append(problems, s.at(v, "route %q: degraded: %s is none of %s", route, article(v.GetToken()), forms))
			continue
		}
		if p := append(s.decode(v, &d), negatives(s, v)...); p != nil {
			problems = append(problems, p...)
			continue
		}
		if (d.Stale == nil) == (d.Canned == "") {
			problems = append(problems, s.at(v, "route %q: degraded: each is one of %s", route, forms))
			continue
		}
		list = append(list, d)
	}
	return list, problems
}

// parseRetention reads how long content is kept: none, until_done, or days.
func parseRetention(text string) (word string, days int, err error) {
	switch text {
	case "", "none", "until_done":
		return text, 0, nil
	}
	number, isDays := strings.CutSuffix(text, "d")
	days, err = strconv.Atoi(number)
	if !isDays || err != nil || days < 1 || days > 36500 {
		return "", 0, fmt.Errorf("retention: %q is none: use none, until_done, or a number of days such as 30d", text)
	}
	return "days", days, nil
}
