package provider

import "os"

// Env looks up an environment variable; nil is the process's environment.
type Env func(name string) (string, bool)

func (e Env) get(name string) string {
	if e == nil {
		return os.Getenv(name)
	}
	text, _ := e(name)
	return text
}
