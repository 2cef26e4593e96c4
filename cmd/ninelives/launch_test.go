package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ninelives-ai/ninelives/gateway"
)

// fakeGateway says that it is one, and which models it serves.
func fakeGateway(models ...string) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"service":%q,"status":"alive"}`, gateway.Service)
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		list := []map[string]string{}
		for _, m := range models {
			list = append(list, map[string]string{"id": m})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": list})
	})
	return httptest.NewServer(mux)
}

// TestLaunch runs the real binary with clients that are scripts in the bin of
// each test. Beside exits and save (see TestScripts) there are
//
//	gateway MODEL …  start something that looks like a gateway; sets $GATEWAY
//	other            start a server that is none; sets $OTHER
func TestLaunch(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the clients of these tests are shell scripts")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/launch",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("TMPDIR", env.WorkDir)
			bin := filepath.Join(env.WorkDir, "bin")
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			programs, err := os.ReadDir(bin)
			if err != nil {
				return err
			}
			for _, p := range programs {
				if err := os.Chmod(filepath.Join(bin, p.Name()), 0o755); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "save": save,
			"gateway": func(ts *testscript.TestScript, _ bool, args []string) {
				srv := fakeGateway(args...)
				ts.Defer(srv.Close)
				ts.Setenv("GATEWAY", srv.URL)
			},
			"other": func(ts *testscript.TestScript, _ bool, _ []string) {
				srv := httptest.NewServer(http.NotFoundHandler())
				ts.Defer(srv.Close)
				ts.Setenv("OTHER", srv.URL)
			},
		},
		RequireExplicitExec: true,
	})
}

func TestAGatewayOfItsOwnLivesAsLongAsTheClient(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the client is a shell script")
	}
	if isGateway(t.Context(), defaultGateway) == nil {
		t.Skip("a gateway runs on this machine")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$ANTHROPIC_BASE_URL\" >" + filepath.Join(dir, "asked") + "\nexit 5\n"
	if err := os.WriteFile(filepath.Join(dir, "claude"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var log strings.Builder
	p := &process{stderr: &log, env: func(string) (string, bool) { return "", false }}
	srv := fakeGateway("fast")
	defer srv.Close()
	running := false
	ctx, cancel := context.WithCancel(t.Context())
	err := p.launchClient(ctx, clientNamed("claude"), nil, func(own context.Context) (string, func(), error) {
		running = true
		cancel()
		if own.Err() != nil {
			t.Error("a Ctrl-C ends the gateway before the client")
		}
		return srv.URL, func() { running = false }, nil
	})
	var end *ended
	if !errors.As(err, &end) || end.code != 5 {
		t.Errorf("the end is %v", err)
	}
	if running {
		t.Error("the gateway outlives the client")
	}
	if asked, _ := os.ReadFile(filepath.Join(dir, "asked")); string(asked) != srv.URL+"\n" {
		t.Errorf("it asked %q", asked)
	}
	if err := p.launchClient(t.Context(), clientNamed("claude"), nil, nil); err == nil || !strings.Contains(err.Error(), "ninelives serve") {
		t.Errorf("without a gateway: %v", err)
	}
}

func TestAProvidersKeyIsNotSentToAGatewayElsewhere(t *testing.T) {
	env := func(name string) string { return map[string]string{"ANTHROPIC_API_KEY": "sk-mine"}[name] }
	w, err := claudeWay(&launching{base: "https://gateway.example", env: env})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range w.environ([]string{"ANTHROPIC_API_KEY=sk-mine", "A=b"}) {
		if strings.Contains(entry, "sk-mine") {
			t.Errorf("%s is in the environment", entry)
		}
	}
	if w.set["ANTHROPIC_AUTH_TOKEN"] != placeholder {
		t.Errorf("the token is %q", w.set["ANTHROPIC_AUTH_TOKEN"])
	}
}
