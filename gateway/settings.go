package gateway

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// Settings are everything that a gateway goes by, as data. They are a value: a
// changed file makes new ones, and a running call keeps those that it began
// with. Zero fields mean the defaults that are named.
type Settings struct {
	// Routes are what clients can ask for by name. The first one is the default:
	// it takes every model name that nothing else takes.
	Routes []Route
	// Keys are the clients that may ask; none means that everybody may (on
	// loopback only, see Listen).
	Keys []Key
	// Limits bound what one gateway holds at a time.
	Limits Limits
	// Journal says what is kept.
	Journal JournalSettings
	// Grace is how long a call goes on without its client, where the client has
	// asked for that (Idempotency-Key). Default 30 s.
	Grace time.Duration
	// Open opens a model that is in no route, by its "provider/model" or bare
	// name, where consent and keys allow it; nil means that only the models of
	// routes are served. It may be called often: it caches.
	Open func(name string) (ninelives.Model, error)
}

// Route is a chain of candidates under a name, with how it heals.
type Route struct {
	Name string
	// Match are further model names that this route takes; * stands for any
	// characters.
	Match []string
	// Targets are its candidates, in order of preference.
	Targets []Target
	// Policy is how it heals; nil means the gateway's default (DefaultPolicy).
	Policy *heal.Policy
	// Mode is what becomes of a stream that breaks after the client has seen
	// some of it: ModeContinue (default), ModeHold or ModeFail.
	Mode heal.Mode
	// Deadline bounds a call in all; 0 means the policy's.
	Deadline time.Duration
	// Order says which candidate is asked first. Default OrderListed.
	Order Order
	// Sticky asks the candidate first that has served the same session before,
	// for its prompt cache. Default true in configuration; the zero value is off.
	Sticky bool
	// Hedge starts the next candidate beside one that is silent for so long; 0
	// is off.
	Hedge time.Duration
	// Continue goes on with answers that end at their limit of tokens although
	// the client set that limit.
	Continue bool
	// Cache keeps whole answers for equal requests.
	Cache CacheSettings
	// Degraded is what is served when no candidate can answer, in this order.
	Degraded []heal.Substitute
	// Priority of its calls in the queues of candidates: higher goes first.
	// Default 0; batch work has a negative one.
	Priority int
}

// Target is a candidate of a route.
type Target struct {
	Model ninelives.Model
	// Weight is its share under OrderWeighted; 0 means 1.
	Weight float64
}

// Order says which candidate of a route is asked first.
type Order string

// The orders of a route. Health goes before all of them.
const (
	OrderListed   Order = "listed"   // as configured
	OrderWeighted Order = "weighted" // by chance, in proportion to the weights
	OrderLatency  Order = "latency"  // the fastest to its first token of late
	OrderCost     Order = "cost"     // the cheapest for this request
)

// CacheSettings bound the exact response cache; zero Entries is off.
type CacheSettings struct {
	Entries int
	TTL     time.Duration // 0 means 1 h
	// Shared lets one client's answers serve the others; otherwise each client
	// key is answered from its own alone.
	Shared bool
}

// Key is a client that may ask.
type Key struct {
	// Name is shown in logs, metrics and the journal.
	Name string
	// Hash is the SHA-256 of the client's key; the key itself is kept nowhere.
	Hash [32]byte
	// Routes are the names of the routes and models that it may use, * included;
	// empty means all.
	Routes []string
	Budget Budget
	Rate   Rate
	// Priority is added to the route's.
	Priority int
}

// Budget is what a key may spend in a period; zero amounts are no limit.
type Budget struct {
	Money  float64 // US dollars
	Tokens int     // input and output
	// Per is "day", "week", "month" (calendar, UTC) or "total". Default "month".
	Per string
}

// Rate is what a key may do in any minute; zero is no limit.
type Rate struct {
	Requests int
	Tokens   int
	// Concurrent is how many calls may be under way at once.
	Concurrent int
}

// Limits bound what one gateway holds.
type Limits struct {
	Body        int64         // bytes of a request; default 32 MiB
	Headers     int           // bytes of its headers; default 64 KiB
	Connections int           // default 4096
	InFlight    int           // calls at a time; default 1024, further ones get 503
	Memory      int64         // bytes of request bodies held at a time; default 512 MiB
	ReadTimeout time.Duration // for a whole request; default 60 s
	// Write is how long a client may take none of its stream before it counts as
	// gone; default 60 s.
	Write time.Duration
}

// JournalSettings say what is kept of calls.
type JournalSettings struct {
	// Retention is how long what was asked and answered is kept: RetainNone
	// keeps the request only until the call has ended and then removes its
	// content, RetainDone keeps both until a client has the whole answer and
	// removes them then, RetainDays keeps them for Days.
	Retention Retention
	Days      int
	// Refuse says what happens when the journal cannot be written: true refuses
	// calls (503), false serves them without and raises a metric.
	Refuse bool
	// Off keeps no journal at all.
	Off bool
}

// Retention says how long the content of calls is kept.
type Retention string

// The retentions. Default RetainDays with 30.
const (
	RetainNone Retention = "none"
	RetainDone Retention = "until_done"
	RetainDays Retention = "days"
)
