package provider

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Option changes how Open opens a model.
type Option func(*settings) error

// settings are what the options have said.
type settings struct {
	provider     string
	base         string
	key          *Secret
	account      string
	protocol     ninelives.Protocol
	also         []ninelives.Protocol
	dialect      string
	version      string
	window       int
	learnt       int
	headers      map[string]string
	describe     []func(*ninelives.Candidate)
	network      network
	dial         DialFunc
	roundTripper http.RoundTripper
	env          Env
}

// Provider names the vendor or server where the spec is the bare model name.
// A name that is not known needs a BaseURL.
func Provider(name string) Option {
	return func(s *settings) error {
		s.provider = strings.ToLower(strings.TrimSpace(name))
		return nil
	}
}

// BaseURL is the root of the API, such as "https://llm.example.com/v1": for
// OpenAI's protocols with the version, for Anthropic's and Gemini's without.
// The default is the vendor's variable (OPENAI_BASE_URL, …), else its own URL.
func BaseURL(url string) Option {
	return func(s *settings) error { s.base = strings.TrimSpace(url); return nil }
}

// Key is the credential; the default is the vendor's environment variable. An
// empty one sends none.
func Key(key Secret) Option {
	return func(s *settings) error { s.key = &key; return nil }
}

// Account groups keys that share a balance; the default is the key itself.
func Account(name string) Option {
	return func(s *settings) error { s.account = name; return nil }
}

// Protocol names the wire protocol where neither the vendor nor the base URL
// tells it.
func Protocol(p ninelives.Protocol) Option {
	return func(s *settings) error {
		s.protocol = p
		return spoken(p)
	}
}

// AlsoSpeaks names further protocols that the server speaks at the same base
// URL; see Model.Speaking. The default is what is known of the vendor.
func AlsoSpeaks(p ...ninelives.Protocol) Option {
	return func(s *settings) error {
		s.also = append(s.also, p...)
		for _, one := range p {
			if err := spoken(one); err != nil {
				return err
			}
		}
		return nil
	}
}

// spoken refuses a protocol in which no requests are written.
func spoken(p ninelives.Protocol) error {
	if _, ok := codecs[p]; !ok {
		return fmt.Errorf("provider: %q is no protocol to send in: use %s, %s, %s or %s", p,
			ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini)
	}
	return nil
}

// Dialect names the server's dialect ("deepseek", "vllm", …) where the base
// URL does not tell it.
func Dialect(name string) Option {
	return func(s *settings) error { s.dialect = name; return nil }
}

// APIVersion is Azure's api-version; the default is AZURE_OPENAI_API_VERSION,
// else OPENAI_API_VERSION. Without one, Azure's unversioned v1 API is used.
func APIVersion(version string) Option {
	return func(s *settings) error { s.version = version; return nil }
}

// Window is the context window in tokens; it goes before what is known.
func Window(tokens int) Option {
	return func(s *settings) error {
		if tokens < 0 {
			return fmt.Errorf("provider: a context window of %d tokens makes no sense", tokens)
		}
		s.window = tokens
		return nil
	}
}

// Learnt is a context window in tokens that the server itself has told. It
// fills in for one that is not known and narrows one that is; see Found.Window.
func Learnt(tokens int) Option {
	return func(s *settings) error { s.learnt = tokens; return nil }
}

// Capabilities changes what is known about the model, after the catalogue and
// before Window.
func Capabilities(change func(*ninelives.Capabilities)) Option {
	return Describe(func(c *ninelives.Candidate) { change(&c.Capabilities) })
}

// Describe is Capabilities for a change that depends on which model it is; the
// names of the candidate are not for changing.
func Describe(change func(*ninelives.Candidate)) Option {
	return func(s *settings) error { s.describe = append(s.describe, change); return nil }
}

// Header sends a further header with every request.
func Header(name, value string) Option {
	return func(s *settings) error {
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch name {
		case "Idempotency-Key", "X-Idempotency-Key":
			// Measured: net/http resends a request that carries it, by itself
			// and unseen, when a reused connection breaks.
			return fmt.Errorf("provider: the header %s is not sent: with it the HTTP client would repeat paid requests unseen", name)
		case "Accept-Encoding":
			return fmt.Errorf("provider: the header %s is not sent: answers would come in a form that is not decoded", name)
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("provider: the header %q cannot be sent: its name or its value holds a character that no header has", name)
		}
		if s.headers == nil {
			s.headers = make(map[string]string)
		}
		s.headers[name] = value
		return nil
	}
}

// CAFile is a PEM file of root certificates to trust beside the system's; the
// default is the variable NINELIVES_CA_FILE. (SSL_CERT_FILE replaces the
// system's own, as usual.)
func CAFile(path string) Option {
	return func(s *settings) error { s.network.caFile = path; return nil }
}

// Proxy is the URL of the proxy (http, https or socks5); the default is the
// usual proxy variables. Servers on this machine are asked without one.
func Proxy(url string) Option {
	return func(s *settings) error { s.network.proxy = url; return nil }
}

// Dial opens the connections, in tests those to a server in memory. A model
// with its own Dial shares no connection with others.
func Dial(dial DialFunc) Option {
	return func(s *settings) error { s.dial = dial; return nil }
}

// Transport carries the requests instead of the process's own transport. It
// must not retry.
func Transport(t http.RoundTripper) Option {
	return func(s *settings) error { s.roundTripper = t; return nil }
}

// Environment replaces the process's environment for keys, base URLs and the like.
func Environment(env Env) Option {
	return func(s *settings) error { s.env = env; return nil }
}
