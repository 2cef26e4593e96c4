package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// DefaultListen is where the gateway listens if nothing else is said.
const DefaultListen = "127.0.0.1:9009"

// unixPrefix begins the address of a socket in the file system.
const unixPrefix = "unix:"

// parseListen reads an address to listen at: host:port or unix:/path. beside
// makes the path of a socket whole.
func parseListen(text string, beside func(path string) string) (string, error) {
	text = strings.TrimSpace(text)
	if path, ok := strings.CutPrefix(text, unixPrefix); ok {
		if path = strings.TrimPrefix(path, "//"); path == "" {
			return "", errors.New("a socket needs a path: write it like unix:/run/ninelives/gateway.sock")
		}
		if path = beside(path); len(path) > maxSocket {
			return "", fmt.Errorf("%s is too long for a socket: at most %d characters", path, maxSocket)
		}
		return unixPrefix + path, nil
	}
	if strings.Contains(text, "://") {
		return "", fmt.Errorf("%q is a URL: write the address alone, like %s, and tls: {cert, key} for https", text, DefaultListen)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		if _, number := strconv.Atoi(text); number == nil {
			return "", fmt.Errorf("%q has no host: write it like 127.0.0.1:%s", text, text)
		}
		return "", fmt.Errorf("%q is no address: write it like %s or unix:/run/ninelives/gateway.sock", text, DefaultListen)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("%q has no port: it is a number up to 65535, like %s", text, DefaultListen)
	}
	if strings.ContainsAny(host, " /") {
		return "", fmt.Errorf("%q has no host: write it like %s", text, DefaultListen)
	}
	return net.JoinHostPort(host, port), nil
}

// maxSocket is the longest path of a socket that every system takes.
const maxSocket = 103
