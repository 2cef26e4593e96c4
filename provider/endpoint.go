package provider

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
)

// endpoint is where the requests of one model go.
type endpoint struct {
	base     *url.URL
	protocol ninelives.Protocol
	model    string
	// deployment: the model is in the path (Azure's versioned API).
	deployment bool
}

// The last parts of the paths that people copy into a base URL.
var endpointPaths = []string{"/chat/completions", "/responses", "/messages", "/completions", "/embeddings"}

// parseBase reads a base URL and takes off what does not belong to it.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("provider: the base URL cannot be read: write it like https://api.example.com/v1")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("provider: the base URL %q is not complete: write it like https://api.example.com/v1", u.Redacted())
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("provider: the base URL %q has a port that does not exist: use one from 1 to 65535", u.Redacted())
		}
	}
	u.Fragment, u.RawFragment = "", ""
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	for _, p := range endpointPaths {
		u.Path = strings.TrimSuffix(u.Path, p)
	}
	return u, nil
}

// url is the address of one request.
func (e endpoint) url(stream bool) *url.URL {
	u := *e.base
	switch e.protocol {
	case ninelives.AnthropicMessages:
		u.Path = versioned(u.Path, "/v1") + "/messages"
	case ninelives.Gemini:
		path, query, _ := strings.Cut(gemini.Path(e.model, stream), "?")
		u.RawPath = versioned(u.Path, "/v1beta") + path
		u.Path, _ = url.PathUnescape(u.RawPath)
		if query != "" {
			u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+query, "&")
		}
	case ninelives.OpenAIResponses:
		u.Path = e.openAI() + "/responses"
	default:
		u.Path = e.openAI() + "/chat/completions"
	}
	return &u
}

// embedURL is the address of a request for the vectors of so many texts.
func (e endpoint) embedURL(texts int) *url.URL {
	u := *e.base
	if e.protocol == ninelives.Gemini {
		u.RawPath = versioned(u.Path, "/v1beta") + gemini.EmbedPath(e.model, texts)
		u.Path, _ = url.PathUnescape(u.RawPath)
		return &u
	}
	u.Path = e.openAI() + "/embeddings"
	return &u
}

// openAI is the path before the method.
func (e endpoint) openAI() string {
	path := e.base.Path
	if e.deployment && !strings.Contains(path, "/deployments/") {
		path = strings.TrimSuffix(path, "/openai") + "/openai/deployments/" + e.model
	}
	return path
}

// versioned adds the API's version to a base URL that comes without one.
func versioned(path, version string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return path
	}
	return path + version
}

// hostPort is the endpoint's host and port.
func (e endpoint) hostPort() string {
	port := e.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[e.base.Scheme]
	}
	return net.JoinHostPort(e.base.Hostname(), port)
}

// local reports whether requests stay on this machine.
func (e endpoint) local() bool { return ofThisMachine(e.base.Hostname()) }

// ofThisMachine reports whether a host is this machine by its name.
func ofThisMachine(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
