package config

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

const teamKey = "nl-0123456789012345678901234567890123456789012"

const wholeGateway = `
model: gpt
fallbackModels: [anthropic/claude-sonnet-4-6]
modelPresets: {gpt: openai/gpt-5.4}
policy: {deadline: 5m, concurrency: {in_flight: 20}}
gateway:
  listen: [127.0.0.1:9009, "[::1]:9009", unix:gateway.sock]
  insecure: false
  grace: 10s
  keys:
    - name: laptop
      key: ${TEAM_KEY}
      routes: [fast, openai/*, gpt-5.4]
      budget: {money: 20, tokens: 5000000, per: week}
      rate: {requests: 60, tokens: 100000, concurrent: 4}
      priority: -1
    - name: ci
      hash: sha256:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
  routes:
    fast:
      match: [gpt-4o-mini, claude-*haiku*]
      models:
        - {model: gpt, weight: 3}
        - {provider: groq, model: openai/gpt-oss-120b, weight: 0.5}
        - anthropic/claude-sonnet-4-6
      policy: {preset: interactive, budget: {requests: 3}}
      mode: hold
      deadline: 45s
      order: weighted
      sticky: false
      hedge: 4s
      continue: true
      cache: {entries: 500, ttl: 10m}
      degraded:
        - stale: {entries: 100, max_age: 1h}
        - canned: We are back soon.
        - unavailable
      priority: -5
  limits: {body: 16MB, headers: 32KiB, connections: 100, in_flight: 50, memory: 1GiB, read_timeout: 20s, write: 30s}
  journal: {retention: 7d, refuse: true, key: "${JOURNAL_KEY}"}
`

func gatewayEnv(more ...string) provider.Env {
	return environ(append(more, "OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey, "GROQ_API_KEY", testKey,
		"TEAM_KEY", teamKey, "JOURNAL_KEY", "0123456789abcdef0123")...)
}

// gatewayOf makes the gateway of one file, whose name in problems is "f.yaml".
func gatewayOf(t *testing.T, text string, env provider.Env) (gateway.Settings, Serving, []string, string) {
	t.Helper()
	dir := t.TempDir()
	c, skipped, err := Load([]string{write(t, dir, "f.yaml", text)}, env)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	set, serving, problems, err := c.Gateway(context.Background(), env)
	var lines []string
	for _, p := range append(skipped, problems...) {
		lines = append(lines, strings.ReplaceAll(p.Error(), dir+"/", ""))
	}
	message := ""
	if err != nil {
		message = strings.ReplaceAll(err.Error(), dir+"/", "")
	}
	for i, l := range serving.Listen {
		serving.Listen[i] = strings.ReplaceAll(l, dir+"/", "")
	}
	return set, serving, lines, message
}

func targetsOf(r gateway.Route) (list []string) {
	for _, t := range r.Targets {
		name := t.Model.Name()
		if t.Weight != 0 {
			name += fmt.Sprint(" x", t.Weight)
		}
		list = append(list, name)
	}
	return list
}

func TestAGatewayIsWhatItsSectionSays(t *testing.T) {
	set, serving, problems, fatal := gatewayOf(t, wholeGateway, gatewayEnv())
	if fatal != "" || problems != nil {
		t.Fatal(problems, fatal)
	}
	if want := []string{"127.0.0.1:9009", "[::1]:9009", "unix:gateway.sock"}; !slices.Equal(serving.Listen, want) {
		t.Errorf("listens at %q, want %q", serving.Listen, want)
	}
	if serving.Cert != "" || serving.Insecure || serving.JournalKey.Reveal() != "0123456789abcdef0123" {
		t.Errorf("%+v", serving)
	}
	wantKeys := []gateway.Key{
		{Name: "laptop", Hash: sha256.Sum256([]byte(teamKey)), Routes: []string{"fast", "openai/*", "gpt-5.4"},
			Budget: gateway.Budget{Money: 20, Tokens: 5_000_000, Per: "week"}, Rate: gateway.Rate{Requests: 60, Tokens: 100_000, Concurrent: 4}, Priority: -1},
		{Name: "ci", Hash: [32]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}},
	}
	if !reflect.DeepEqual(set.Keys, wantKeys) {
		t.Errorf("keys %+v\nwant %+v", set.Keys, wantKeys)
	}
	if want := (gateway.Limits{Body: 16_000_000, Headers: 32 << 10, Connections: 100, InFlight: 50, Memory: 1 << 30, ReadTimeout: 20 * time.Second, Write: 30 * time.Second}); set.Limits != want {
		t.Errorf("limits %+v, want %+v", set.Limits, want)
	}
	if want := (gateway.JournalSettings{Retention: gateway.RetainDays, Days: 7, Refuse: true}); set.Journal != want {
		t.Errorf("journal %+v, want %+v", set.Journal, want)
	}
	if set.Grace != 10*time.Second || len(set.Routes) != 2 {
		t.Fatalf("grace %v, %d routes", set.Grace, len(set.Routes))
	}
	first, fast := set.Routes[0], set.Routes[1]
	if got, want := targetsOf(first), []string{"openai/gpt-5.4", "anthropic/claude-sonnet-4-6"}; first.Name != "default" || !slices.Equal(got, want) || !first.Sticky || first.Mode != "" {
		t.Errorf("the first route is %+v with %q", first, got)
	}
	wantPolicy := gateway.DefaultPolicy()
	wantPolicy.Buffered, wantPolicy.Streamed, wantPolicy.Limit.InFlight = 5*time.Minute, 5*time.Minute, 20
	if !reflect.DeepEqual(*first.Policy, wantPolicy) {
		t.Errorf("its policy is\n%+v\nwant\n%+v", *first.Policy, wantPolicy)
	}
	if got, want := targetsOf(fast), []string{"openai/gpt-5.4 x3", "groq/openai/gpt-oss-120b x0.5", "anthropic/claude-sonnet-4-6"}; !slices.Equal(got, want) {
		t.Errorf("fast asks %q, want %q", got, want)
	}
	wantPolicy = gateway.DefaultPolicy() // a preset changes what it is about, and nothing else
	wantPolicy.Name, wantPolicy.Clocks.SoftFirst = "interactive", 10*time.Second
	wantPolicy.Buffered, wantPolicy.Streamed, wantPolicy.Limit.InFlight, wantPolicy.Budget.Requests = 5*time.Minute, 5*time.Minute, 20, 3
	if !reflect.DeepEqual(*fast.Policy, wantPolicy) {
		t.Errorf("its policy is\n%+v\nwant\n%+v", *fast.Policy, wantPolicy)
	}
	if len(fast.Degraded) != 3 || fast.Degraded[1] != heal.Canned("We are back soon.") || fast.Degraded[2] != heal.Unavailable() {
		t.Errorf("degraded %+v", fast.Degraded)
	}
	fast.Targets, fast.Policy, fast.Degraded = nil, nil, nil
	if want := (gateway.Route{Name: "fast", Match: []string{"gpt-4o-mini", "claude-*haiku*"}, Mode: heal.ModeHold, Deadline: 45 * time.Second, Order: gateway.OrderWeighted,
		Hedge: 4 * time.Second, Continue: true, Cache: gateway.CacheSettings{Entries: 500, TTL: 10 * time.Minute}, Priority: -5}); !reflect.DeepEqual(fast, want) {
		t.Errorf("fast is\n%+v\nwant\n%+v", fast, want)
	}
}

// Without a section a gateway does what ask does.
func TestAGatewayNeedsNoSection(t *testing.T) {
	for text, want := range map[string][]string{
		"":                     {"anthropic/claude-sonnet-4-6", "openai/gpt-5.4"},
		"model: openai/gpt-4o": {"openai/gpt-4o"},
		"gateway: {routes: {default: {sticky: false}}}":                                                    {"anthropic/claude-sonnet-4-6", "openai/gpt-5.4"},
		"model: openai/gpt-4o\ngateway: {routes: {a: {models: [openai]}, default: {models: [anthropic]}}}": {"anthropic/claude-sonnet-4-6"},
	} {
		env := environ("OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey)
		set, serving, problems, fatal := gatewayOf(t, text, env)
		if fatal != "" || problems != nil {
			t.Errorf("%q: %q %s", text, problems, fatal)
			continue
		}
		if r := set.Routes[0]; r.Name != "default" || r.Policy != nil || !slices.Equal(targetsOf(r), want) {
			t.Errorf("%q: the first route is %+v with %q, want %q", text, r, targetsOf(r), want)
		}
		if !slices.Equal(serving.Listen, []string{DefaultListen}) {
			t.Errorf("%q: it listens at %q", text, serving.Listen)
		}
	}
	set, _, problems, err := Default().Gateway(context.Background(), environ())
	if !errors.Is(err, ErrNoModel) || problems != nil || len(set.Routes) != 1 || set.Routes[0].Name != "default" || set.Routes[0].Targets != nil {
		t.Errorf("with nothing at all: %+v, %v, %v", set.Routes, problems, err)
	}
}

func TestWhatIsWrongWithAGatewayIsToldWithItsPlace(t *testing.T) {
	const route = "gateway: {routes: {a: {models: [openai], "
	for text, want := range map[string]string{
		"gateway: 3":                                                                         `f.yaml:1:10: gateway: expected settings of its own, not "3"`,
		"gateway: {listn: x}":                                                                `f.yaml:1:11: there is no setting "listn" here (did you mean "listen"?)`,
		"gateway: {inFlight: 1, in_flight: 2}":                                               `f.yaml:1:24: "in_flight" is the same setting as "inFlight": keep one`,
		"gateway: {listen: {a: 1}}":                                                          `f.yaml:1:19: expected an address like 127.0.0.1:9009 or unix:/run/ninelives.sock, not settings`,
		"gateway: {listen: localhost}":                                                       `f.yaml:1:19: listen: "localhost" is no address: write it like 127.0.0.1:9009 or unix:/run/ninelives/gateway.sock`,
		"gateway: {listen: [127.0.0.1:1, 9009]}":                                             `f.yaml:1:33: listen: "9009" has no host: write it like 127.0.0.1:9009`,
		"gateway: {listen: 127.0.0.1:99999}":                                                 `f.yaml:1:19: listen: "127.0.0.1:99999" has no port: it is a number up to 65535, like 127.0.0.1:9009`,
		"gateway: {listen: 'http://127.0.0.1:1'}":                                            `f.yaml:1:19: listen: "http://127.0.0.1:1" is a URL: write the address alone, like 127.0.0.1:9009, and tls: {cert, key} for https`,
		"gateway: {listen: 'unix:'}":                                                         `f.yaml:1:19: listen: a socket needs a path: write it like unix:/run/ninelives/gateway.sock`,
		"gateway: {tls: {cert: a.pem}}":                                                      `f.yaml:1:16: tls: it takes both, cert and key, each a PEM file`,
		"gateway: {tls: {cert: a.pem, key: b.pem}}":                                          `f.yaml:1:11: tls: open a.pem: no such file or directory`,
		"gateway: {keys: {a: 1}}":                                                            `f.yaml:1:17: keys: expected a list, like [{name: laptop, hash: …}]: ninelives keys new makes one`,
		"gateway: {keys: [{name: a}]}":                                                       `f.yaml:1:18: keys: "a" has no key: ninelives keys new makes one and prints its hash`,
		"gateway: {keys: [{key: '${TEAM_KEY}'}]}":                                            `f.yaml:1:18: keys: each needs a name of at most 200 characters, such as laptop`,
		"gateway: {keys: [{name: a, key: '${UNSET}'}]}":                                      `f.yaml:1:33: ${UNSET}: this variable is not set (write ${UNSET:-…} for a default)`,
		"gateway: {keys: [{name: a, hash: " + teamKey + "}]}":                                `f.yaml:1:34: keys: the hash of "a" is none: it is sha256: and 64 hexadecimal digits, as ninelives keys hash prints it`,
		"gateway: {keys: [{name: a, hash: 'sha256:00'}]}":                                    `f.yaml:1:34: keys: the hash of "a" is none: it is sha256: and 64 hexadecimal digits, as ninelives keys hash prints it`,
		"gateway: {keys: [{name: a, key: '${TEAM_KEY}', hash: x}]}":                          `f.yaml:1:33: keys: key and hash are both set: keep the hash`,
		"gateway: {keys: [{name: a, key: '${TEAM_KEY}'}, {name: b, key: '${TEAM_KEY}'}]}":    `f.yaml:1:49: keys: "b" is the same key as "a": make one for each client with ninelives keys new`,
		"gateway: {keys: [{name: a, key: '${TEAM_KEY}'}, {name: a, key: '${JOURNAL_KEY}'}]}": `f.yaml:1:56: keys: two keys have the name "a": their limits and lines could not be told apart`,
		"gateway: {keys: [{name: a, key: '${TEAM_KEY}', budget: {per: year}}]}":              `f.yaml:1:62: per: there is no "year": use one of day, week, month, total`,
		"gateway: {keys: [{name: a, key: '${TEAM_KEY}', rate: {requests: -1}}]}":             `f.yaml:1:65: -1 is below zero`,
		route + "}}, keys: [{name: a, key: '${TEAM_KEY}', routes: [a, defalt]}]}":            `f.yaml:1:95: keys: "a" may use "defalt", but there is no such route or model (did you mean "default"?)`,
		"gateway: {routes: [a]}":                                                             `f.yaml:1:19: routes: expected routes by name, like fast: {models: [groq, openai/gpt-5.4]}`,
		"gateway: {routes: {a: openai}}":                                                     `f.yaml:1:23: route "a": expected settings of its own, like {models: [groq, openai/gpt-5.4]}`,
		"gateway: {routes: {a: {}}}":                                                         `f.yaml:1:20: route "a": it needs models, like models: [groq, openai/gpt-5.4]`,
		"gateway: {routes: {a*: {models: [openai]}}}":                                        `f.yaml:1:20: route "a*": clients ask for it by its name: at most 200 characters, without blanks and *`,
		"gateway: {routes: {a: {models: openai}}}":                                           `f.yaml:1:32: route "a": expected a list of models, like [fast, openai/gpt-5.4]`,
		"gateway: {routes: {a: {models: [{model: openai, weight: 0}]}}}":                     `f.yaml:1:57: route "a": a weight is a share above 0: leave the model out if it is to have none`,
		"gateway: {routes: {a: {models: [{model: openai, weight: .nan}]}}}":                  `f.yaml:1:57: route "a": a weight is a share above 0: leave the model out if it is to have none`,
		"gateway: {routes: {a: {models: [opnai/x]}}}":                                        "f.yaml:1:20: route \"a\": none of its models can be asked",
		route + "match: [x, x]}}}":                                                           `f.yaml:1:53: route "a": the route "a" takes "x" already: keep one of them`,
		route + "match: [b]}, b: {models: [openai]}}}":                                       `f.yaml:1:50: route "a": the route "b" takes "b" already: keep one of them`,
		route + "match: ['']}}}":                                                             `f.yaml:1:50: route "a": "" matches nothing: write a model's name, with * for any characters`,
		route + "mode: restart}}}":                                                           `f.yaml:1:48: mode: there is no "restart": use one of continue, hold, fail`,
		route + "policy: {mode: restart}}}}":                                                 `f.yaml:1:57: route "a": no client can unsee what it has seen: use one of continue, hold, fail`,
		route + "policy: {preset: hardend}}}}":                                               `f.yaml:1:59: preset: there is no "hardend" (did you mean "hardened"?): use one of default, interactive, background, catbuddy, codebuddy, hardened`,
		route + "order: price}}}":                                                            `f.yaml:1:49: order: there is no "price": use one of listed, weighted, latency, cost`,
		route + "cache: {ttl: 1m}}}}":                                                        `f.yaml:1:49: route "a": a cache needs its number of entries, like cache: {entries: 1000}`,
		route + "degraded: stale}}}":                                                         `f.yaml:1:52: route "a": degraded: expected a list of stale: {entries: 1000, max_age: 1h}, canned: TEXT, or unavailable`,
		route + "degraded: [stale]}}}":                                                       `f.yaml:1:53: route "a": degraded: "stale" is none of stale: {entries: 1000, max_age: 1h}, canned: TEXT, or unavailable`,
		route + "degraded: [unavailable, canned: x]}}}":                                      `f.yaml:1:53: route "a": degraded: nothing is served after unavailable: put it last`,
		"gateway: {journal: {retention: 30}}":                                                `f.yaml:1:32: journal: retention: "30" is none: use none, until_done, or a number of days such as 30d`,
		"gateway: {journal: {retention: for ever}}":                                          `f.yaml:1:32: journal: retention: "for ever" is none: use none, until_done, or a number of days such as 30d`,
		"gateway: {journal: {key: short}}":                                                   `f.yaml:1:26: journal: a key of fewer than 16 characters can be guessed: make one with openssl rand -hex 32`,
		"gateway: {limits: {body: 3 pounds}}":                                                `f.yaml:1:26: "3 pounds" is no size: its unit is B, KB, MB, GB, KiB, MiB or GiB`,
		"gateway: {limits: {body: [1]}}":                                                     `f.yaml:1:26: a list is no size: write it like 32MB or 512KiB`,
		"gateway: {limits: {body: 0}}":                                                       `f.yaml:1:26: "0" is no size that can be held`,
		"gateway: {limits: {read_timeout: 3}}":                                               `f.yaml:1:34: "3" needs a unit: write it like 30s or 2m`,
	} {
		_, _, _, got := gatewayOf(t, "model: openai\n"+text, gatewayEnv())
		if want = strings.ReplaceAll(want, "f.yaml:1:", "f.yaml:2:"); got != want {
			t.Errorf("%s\n  %s\nwant:\n  %s", text, got, want)
		}
	}
}

// What is wrong with the gateway is no matter of those who ask without one.
func TestABrokenGatewayCostsOnlyItself(t *testing.T) {
	c, problems, fatal := load(t, "model: openai\ngateway: {keys: [{name: a, key: '${UNSET}'}], listn: 3}", gatewayEnv())
	if fatal != "" || problems != nil {
		t.Fatal(fatal, problems)
	}
	if got, _, err := chain(t, c, gatewayEnv()); err != nil || !slices.Equal(got, []string{"openai/gpt-5.4"}) {
		t.Error(got, err)
	}
}

func TestAGatewayThatStrangersReachNeedsKeysOrTLS(t *testing.T) {
	const keys = "keys: [{name: a, key: '${TEAM_KEY}'}]"
	dir := t.TempDir()
	cert, key := keyPair(t, dir)
	tls := fmt.Sprintf("tls: {cert: %s, key: %s}", cert, key)
	for text, starts := range map[string]bool{
		"listen: 127.0.0.1:9009":               true,
		"listen: localhost:9009":               true,
		"listen: '[::1]:9009'":                 true,
		"listen: unix:/run/x.sock":             true,
		"listen: 0.0.0.0:9009":                 false,
		"listen: ':9009'":                      false,
		"listen: '[::]:9009'":                  false,
		"listen: 192.168.1.5:9009":             false,
		"listen: gateway.example:9009":         false,
		"listen: [127.0.0.1:1, 10.0.0.1:1]":    false,
		"listen: 0.0.0.0:9009, insecure: true": true,
		"listen: 0.0.0.0:9009, " + keys:        true,
		"listen: 0.0.0.0:9009, " + tls:         true,
	} {
		_, serving, problems, fatal := gatewayOf(t, "model: openai\ngateway: {"+text+"}\n", gatewayEnv())
		if (fatal == "") != starts || !starts && !strings.HasPrefix(fatal, "f.yaml:2:11: listen: ") {
			t.Errorf("%s: %s", text, fatal)
		}
		if strings.Contains(text, "tls") && (serving.Cert != cert || serving.Key != key || len(problems) != 1 || !strings.Contains(problems[0], "everybody who reaches 0.0.0.0:9009 can ask at your cost")) {
			t.Errorf("%s: %+v %q", text, serving, problems)
		}
	}
}

// What is said on the command line goes before the files, also where they say
// something that would not start.
func TestFlagsSayWhereAGatewayListens(t *testing.T) {
	start := func(listen []string, insecure bool) ([]string, string) {
		c, _, _ := load(t, "model: openai\ngateway: {listen: 0.0.0.0:9009}", gatewayEnv())
		err := c.UseListen(listen, insecure)
		if err == nil {
			var serving Serving
			if _, serving, _, err = c.Gateway(context.Background(), gatewayEnv()); err == nil {
				return serving.Listen, ""
			}
		}
		return nil, err.Error()
	}
	for _, c := range []struct {
		listen   []string
		insecure bool
		want     []string
		wrong    string
	}{
		{nil, true, []string{"0.0.0.0:9009"}, ""},
		{[]string{"127.0.0.1:0", "unix:x.sock"}, false, []string{"127.0.0.1:0", "unix:x.sock"}, ""},
		{[]string{"10.0.0.1:80"}, false, nil, "listen: 10.0.0.1:80 can be reached"},
		{[]string{"9009"}, false, nil, `"9009" has no host: write it like 127.0.0.1:9009`},
		{nil, false, nil, ":2:11: listen: 0.0.0.0:9009 can be reached"},
	} {
		got, wrong := start(c.listen, c.insecure)
		if !slices.Equal(got, c.want) || !strings.Contains(wrong, c.wrong) || (wrong == "") != (c.wrong == "") {
			t.Errorf("%q, insecure %v: %q, %s; want %q, %s", c.listen, c.insecure, got, wrong, c.want, c.wrong)
		}
	}
}

// keyPair writes a certificate and its key.
func keyPair(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}))),
		write(t, dir, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// A route does without the candidates that cannot be asked, and says so.
func TestARouteLosesOnlyWhatCannotBeAsked(t *testing.T) {
	set, _, problems, fatal := gatewayOf(t, `model: openai
consent: {vendors: [openai, groq, mistral]}
gateway:
  routes:
    a:
      models: [openai/gpt-5.4, opnai/x, mistral, anthropic, openai/gpt-5.4, groq]
`, environ("OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey, "GROQ_API_KEY", testKey))
	if got, want := targetsOf(set.Routes[1]), []string{"openai/gpt-5.4", "groq/openai/gpt-oss-120b"}; fatal != "" || !slices.Equal(got, want) {
		t.Errorf("it asks %q, want %q; %s", got, want, fatal)
	}
	want := []string{
		`f.yaml:6:32: route "a": model skipped: unknown provider "opnai" (did you mean "openai"?)`,
		`f.yaml:6:41: route "a": model skipped: no key for mistral: set MISTRAL_API_KEY`,
		`f.yaml:5:5: route "a": anthropic/claude-sonnet-4-6 skipped: anthropic is not among the allowed vendors (openai, groq, mistral) (the setting consent)`,
	}
	if !slices.Equal(problems, want) {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheUsersGatewayIsLayeredUnderTheProjects(t *testing.T) {
	dir := t.TempDir()
	own := write(t, dir, "config.yaml", "model: openai\npolicy: {preset: hardened}\ngateway: {grace: 5s, limits: {in_flight: 7, body: 1MB}, routes: {a: {models: [openai]}, b: {models: [groq]}}, keys: [{name: mine, key: '${TEAM_KEY}'}]}")
	project := write(t, dir, "other.yaml", "policy: {budget: {requests: 2}}\ngateway: {limits: {body: 2MB}, routes: {b: {models: [anthropic]}}, keys: [{name: theirs, key: '${JOURNAL_KEY}'}]}")
	c, _, err := Load([]string{project, own}, gatewayEnv())
	if err != nil {
		t.Fatal(err)
	}
	set, _, problems, err := c.Gateway(context.Background(), gatewayEnv())
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	var got []string
	for _, r := range set.Routes {
		got = append(got, r.Name+": "+strings.Join(targetsOf(r), ", "))
	}
	if want := []string{"default: openai/gpt-5.4", "a: openai/gpt-5.4", "b: anthropic/claude-sonnet-4-6"}; !slices.Equal(got, want) {
		t.Errorf("routes %q, want %q", got, want)
	}
	if set.Grace != 5*time.Second || set.Limits != (gateway.Limits{InFlight: 7, Body: 2_000_000}) || len(set.Keys) != 1 || set.Keys[0].Name != "theirs" {
		t.Errorf("%v %+v %+v", set.Grace, set.Limits, set.Keys)
	}
	if p := set.Routes[0].Policy; p.Name != "hardened" || p.Budget.Requests != 2 {
		t.Errorf("policy %s with %d requests", p.Name, p.Budget.Requests)
	}
	if got, want := c.Origin("gateway.routes.b"), project+":2"; got != want {
		t.Errorf("b is from %s, want %s", got, want)
	}
	if got, want := c.Origin("gateway.routes.a"), own+":3"; got != want {
		t.Errorf("a is from %s, want %s", got, want)
	}
}

// A file that came with a clone opens no door and sends nobody's requests
// elsewhere.
func TestAProjectsFileSetsNoGatewayUntilItIsTrusted(t *testing.T) {
	h := newHome(t, "model: openai\n", "gateway: {listen: 0.0.0.0:80, insecure: true, keys: [{name: x, key: 'a-key-that-its-author-knows'}], routes: {default: {models: [{model: x, base_url: 'https://evil.example/v1'}]}}}\n")
	env := vendorsOf(filepath.Join(filepath.Dir(h.dir), "xdg"))
	paths := Paths(h.dir, env)
	c, problems, err := Load(paths, env)
	if err != nil || len(problems) != 1 || !errors.Is(problems[0], ErrUntrusted) || problems[0].Line != 1 {
		t.Fatal(err, problems)
	}
	set, serving, _, err := c.Gateway(context.Background(), env)
	if err != nil || len(set.Routes) != 1 || !slices.Equal(targetsOf(set.Routes[0]), []string{"openai/gpt-5.4"}) || len(set.Keys) != 0 || serving.Insecure || !slices.Equal(serving.Listen, []string{DefaultListen}) {
		t.Errorf("%+v %+v %v", set, serving, err)
	}
	if c.Origin("gateway") != "" {
		t.Errorf("it is from %s", c.Origin("gateway"))
	}
	if err := Trust(paths[0], nil, env); err != nil {
		t.Fatal(err)
	}
	c, problems, err = Load(paths, env)
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	set, serving, problems, err = c.Gateway(context.Background(), env)
	if err != nil || len(set.Keys) != 1 || !serving.Insecure || !slices.Equal(targetsOf(set.Routes[0]), []string{"custom/x"}) {
		t.Errorf("%+v %+v %v", set, serving, err)
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), `:1:69: keys: the key "x" stands in a project's file for everybody who reads it`) || strings.Contains(problems[0].Error(), "author") {
		t.Errorf("%q", problems)
	}
}

func TestModelsThatAreInNoRouteAreOpenedByTheirNames(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", testKey, "GEMINI_API_KEY", testKey)
	set, _, _, fatal := gatewayOf(t, "model: openai\nconsent: {vendors: [openai, anthropic, gemini]}\nmodelPresets: {house: {provider: openai, model: big, base_url: 'https://llm.example/v1'}}", env)
	if fatal != "" {
		t.Fatal(fatal)
	}
	for name, want := range map[string]string{
		"openai/gpt-5.4":         "openai/gpt-5.4",
		"claude-sonnet-4-6":      "anthropic/claude-sonnet-4-6",
		"claude-next-9":          "anthropic/claude-next-9",
		"gpt-5.4":                "openai/gpt-5.4",
		"gpt-9-turbo":            "openai/gpt-9-turbo",
		"o3":                     "openai/o3",
		"o9-mini":                "openai/o9-mini",
		"gemini-9-pro":           "gemini/gemini-9-pro",
		"house":                  "openai/big",
		"mistral/x":              "no key for mistral: set MISTRAL_API_KEY",
		"ollama/x":               "ollama/x skipped: ollama is not among the allowed vendors (openai, anthropic, gemini) (the setting consent)",
		"qwen3:8b":               `there is no model "qwen3:8b": Ollama on this machine does not have it`,
		"ft:gpt-4o:org::id":      `there is no model "ft:gpt-4o:org::id": Ollama on this machine does not have it`,
		"":                       "this is no name of a model",
		"a\nb":                   "this is no name of a model",
		strings.Repeat("x", 201): "this is no name of a model",
	} {
		m, err := set.Open(name)
		got := ""
		if err != nil {
			got = plainly(err)
		} else {
			got = m.Name()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
		if err != nil {
			continue
		}
		if again, err := set.Open(name); err != nil || again != m {
			t.Errorf("%q is opened twice: %v", name, err)
		}
	}
	if _, err := set.Open("who-knows"); err == nil || !strings.Contains(err.Error(), `"who-knows"`) {
		t.Errorf("who-knows: %v", err)
	}
}

func TestTheKeysOfAGatewayAreShownNowhere(t *testing.T) {
	text := strings.ReplaceAll(wholeGateway, "name: laptop", "name: laptop\n      nam: x")
	set, serving, problems, fatal := gatewayOf(t, text, gatewayEnv())
	all := fmt.Sprintf("%v %+v %#v %v %+v %q %s", set.Keys, set, serving, serving, serving, problems, fatal)
	for _, key := range []string{teamKey, testKey, "0123456789abcdef0123"} {
		if strings.Contains(all, key) {
			t.Errorf("a key is shown in %s", all)
		}
	}
	c, _, err := LoadNamed(write(t, t.TempDir(), "f.yaml", wholeGateway), gatewayEnv())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TEAM_KEY", "JOURNAL_KEY"} {
		if !slices.Contains(c.KeyVariables(), name) {
			t.Errorf("programs would be given %s: %q", name, c.KeyVariables())
		}
	}
}

func TestAKeysHashIsThatOfTheSetting(t *testing.T) {
	text := "model: openai\ngateway: {keys: [{name: a, hash: '" + HashOfKey(teamKey) + "'}]}"
	set, _, _, fatal := gatewayOf(t, text, gatewayEnv())
	if fatal != "" || set.Keys[0].Hash != sha256.Sum256([]byte(teamKey)) {
		t.Error(fatal, set.Keys)
	}
}

func TestEveryByteOfASizeCounts(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "1B": 1, "1KB": 1000, "1KiB": 1024, "1.5 MB": 1_500_000, "32MiB": 32 << 20, "2gb": 2_000_000_000, "1GiB": 1 << 30} {
		set, _, _, fatal := gatewayOf(t, "model: openai\ngateway: {limits: {body: "+text+"}}", gatewayEnv())
		if fatal != "" || set.Limits.Body != want {
			t.Errorf("%s is %d, want %d: %s", text, set.Limits.Body, want, fatal)
		}
	}
}
