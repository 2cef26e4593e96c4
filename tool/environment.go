package tool

import (
	"slices"
	"strings"
)

// Environment is what a command is given of an environment ("NAME=value"):
// without credentials, and set so that nothing waits for a person: no pagers,
// no editors, no prompts, no colours.
//
// A variable is taken for a credential by its name (docs/permissions.md has the
// endings) or because secrets names it. What pass names is handed
// over all the same.
func Environment(environ, secrets, pass []string) []string {
	out := make([]string, 0, len(environ)+len(quietVariables))
	for _, kv := range environ {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || name == "BASH_ENV" || name == "ENV" {
			continue // the last two name files that a shell would run first
		}
		if !slices.Contains(pass, name) && (SecretVariable(name) || slices.Contains(secrets, name)) {
			continue
		}
		if _, ours := quietVariables[name]; ours && !slices.Contains(pass, name) {
			continue
		}
		out = append(out, kv)
	}
	for name, value := range quietVariables {
		if !slices.Contains(pass, name) {
			out = append(out, name+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

// quietVariables keep commands from waiting for a person.
var quietVariables = map[string]string{
	"TERM": "dumb", "NO_COLOR": "1", "CI": "true",
	"PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat", "GH_PAGER": "cat", "AWS_PAGER": "", "SYSTEMD_PAGER": "cat",
	"GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "GH_PROMPT_DISABLED": "1",
	"DEBIAN_FRONTEND": "noninteractive", "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1",
}

// SecretVariable reports a variable whose name says that it holds a credential.
func SecretVariable(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "SSH_AUTH_SOCK", "XAUTHORITY", "GPG_TTY", "GITHUB_TOKEN_PERMISSIONS", "TOKENIZERS_PARALLELISM":
		return false
	}
	for _, part := range []string{"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "AUTH_KEY"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	for _, end := range []string{"_TOKEN", "_TOKENS", "_KEY", "_KEYS", "_PASS", "_PAT", "_PWD", "_AUTH", "_DSN", "_COOKIE", "_JWT", "_BEARER"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	if strings.HasPrefix(name, "OTEL_EXPORTER_OTLP") && strings.HasSuffix(name, "_HEADERS") {
		return true // a collector's token stands there
	}
	return name == "TOKEN" || name == "APITOKEN" || strings.HasSuffix(name, "APITOKEN") || strings.HasSuffix(name, "AUTHTOKEN")
}
