package gateway

import (
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/nearest"
)

// routePrefix before a model's name says that it is the name of a route and of
// nothing else.
const routePrefix = "route:"

// choice is where a call goes.
type choice struct {
	route *Route
	// first is the target that the client has named, which is asked first; -1 if
	// it named none.
	first int
	// given is the name that the client gave; empty if it gave none.
	given string
	by    chosenBy
}

// chosenBy says what the choice goes by.
type chosenBy int

const (
	byDefault chosenBy = iota // nothing: it is the default route
	byRoute                   // the name of the route
	byTarget                  // the name of a target
	byPattern                 // a pattern of the route
	byOpen                    // a name that is in no route: Settings.Open may know it
)

// open says that Settings.Open is asked for the model that was given. If it
// knows it, it is asked first and the default route's targets follow; if not,
// the choice is closed.
func (ch choice) open() bool { return ch.by == byOpen }

// closed is the choice if nobody knows the name that was given.
func (ch choice) closed() choice {
	ch.by = byDefault
	return ch
}

// find chooses the route for the model that a client names; forced is the route
// that its header x-ninelives-route names, which goes before the model. False
// means that there is no route of a name that can be nothing else.
// docs/routes.md has the table.
func find(routes []Route, model, forced string) (choice, bool) {
	name, sure := strings.CutPrefix(model, routePrefix)
	if forced != "" {
		name, sure = strings.TrimPrefix(forced, routePrefix), true
	}
	ch := choice{first: -1, given: model}
	for i := range routes {
		if r := &routes[i]; r.Name == name {
			ch.route, ch.by = r, byRoute
			if forced != "" {
				ch.first = named(r, model)
			}
			return ch, true
		}
	}
	if sure || len(routes) == 0 {
		return choice{}, false
	}
	if model == "" {
		ch.route = &routes[0]
		return ch, true
	}
	for _, is := range [...]func(ninelives.Model, string) bool{isFull, isBare} {
		for i := range routes {
			if t := target(&routes[i], model, is); t >= 0 {
				ch.route, ch.first, ch.by = &routes[i], t, byTarget
				return ch, true
			}
		}
	}
	best := -1
	for i := range routes {
		for _, pattern := range routes[i].Match {
			if n := literal(pattern); n > best && wild(pattern, model) {
				ch.route, ch.by, best = &routes[i], byPattern, n
			}
		}
	}
	if best < 0 {
		ch.route, ch.by = &routes[0], byOpen
	}
	return ch, true
}

// noRoute is what a client is told whose route does not exist.
func noRoute(routes []Route, model, forced string) *refused {
	name, param := strings.TrimPrefix(model, routePrefix), "model"
	if forced != "" {
		name, param = strings.TrimPrefix(forced, routePrefix), "x-ninelives-route"
	}
	names := make([]string, len(routes))
	for i := range routes {
		names[i] = routes[i].Name
	}
	return &refused{Trouble: troubleNoModel, Param: param,
		Text: "there is no route " + shownName(name) + nearest.Hint(name, names) + ": the routes are in the gateway's configuration (GET /v1/models lists them)"}
}

// named is the target of a route that goes by a name; -1 if none does.
func named(r *Route, model string) int {
	if t := target(r, model, isFull); t >= 0 {
		return t
	}
	return target(r, model, isBare)
}

func target(r *Route, model string, is func(ninelives.Model, string) bool) int {
	if model == "" {
		return -1
	}
	for i := range r.Targets {
		if is(r.Targets[i].Model, model) {
			return i
		}
	}
	return -1
}

// nameOf is a target's name, "provider/model" where it speaks for a candidate.
func nameOf(m ninelives.Model) string {
	if c, ok := ninelives.CandidateOf(m); ok {
		return c.Name()
	}
	return m.Name()
}

// isFull says that the model goes by this name with its provider's.
func isFull(m ninelives.Model, name string) bool { return nameOf(m) == name }

// isBare says that the provider knows the model by this name.
func isBare(m ninelives.Model, name string) bool {
	c, ok := ninelives.CandidateOf(m)
	return ok && c.Model == name
}

// literal is how much of a pattern comes before its first *.
func literal(pattern string) int {
	if i := strings.IndexByte(pattern, '*'); i >= 0 {
		return i
	}
	return len(pattern)
}

// wild says that a name is as the pattern says; * stands for any characters,
// none included.
func wild(pattern, name string) bool {
	first, rest, any := strings.Cut(pattern, "*")
	if !any {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for ok {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		var i int
		if i = strings.Index(name, part); i < 0 {
			return false
		}
		name, rest = name[i+len(part):], after
	}
	return false
}
