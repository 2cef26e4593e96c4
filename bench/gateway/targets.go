package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// target is one thing that is measured, and how it is asked.
type target struct {
	*process
	models func(kind string) string
	header http.Header
	// slow: of the requests one at a time it gets a quarter.
	slow bool
}

func same(kind string) string { return kind }

// nginxConf passes every byte on at once and keeps its connections.
const nginxConf = `worker_processes 2;
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/nginx-errors.log crit;
events { worker_connections 2048; }
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  client_body_buffer_size 1m;
  keepalive_requests 1000000000;
  upstream up { server %[2]s; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen %[3]s;
    location / {
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`

// ninelivesConf is a configuration as a user would have it: two candidates that
// speak chat, the second for the case that the first fails, and one that speaks
// Messages. The limits are the defaults.
const ninelivesConf = `modelPresets:
%[3]s
  second: { provider: spare, model: each, base_url: "http://%[1]s/v1", key: k }
model: chat-each
fallbackModels: [second]
gateway:
  routes:
%[4]s
  journal: { off: %[2]t }
`

func (s *setting) conf(up string, off bool) string {
	var presets, routes string
	for _, kind := range []string{modelShort, modelEach, modelBurst, modelPaced} {
		presets += fmt.Sprintf("  chat-%s: { provider: up, model: %s, base_url: \"http://%s/v1\", key: k }\n", kind, kind, up)
		presets += fmt.Sprintf("  messages-%s: { provider: anthropic, model: %s, base_url: \"http://%s\", key: k }\n", kind, kind, up)
		routes += fmt.Sprintf("    relay-%s: { models: [chat-%s, second] }\n", kind, kind)
		routes += fmt.Sprintf("    translate-%s: { models: [messages-%s, second] }\n", kind, kind)
	}
	return fmt.Sprintf(ninelivesConf, up, off, presets, routes)
}

// gateway starts the gateway, with a journal of its own or with none.
func (s *setting) gateway(ctx context.Context, dir, up, name string, journal bool) (*target, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	conf := filepath.Join(home, "bench.yaml")
	if err := os.WriteFile(conf, []byte(s.conf(up, !journal)), 0o600); err != nil {
		return nil, err
	}
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "NINELIVES_LOCAL=off", "NINELIVES_JOURNAL=" + filepath.Join(home, "journal.db")}
	p, err := start(ctx, dir, name, addr, env, s.ninelives, "serve", "--config", conf, "--listen", addr)
	if err != nil {
		return nil, err
	}
	return &target{process: p, models: func(kind string) string { return "relay-" + kind }}, nil
}

// floor starts the plain relay.
func (s *setting) floor(ctx context.Context, dir, up string) (*target, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, dir, "Go relay", addr, nil, s.self, "relay", addr, "http://"+up)
	if err != nil {
		return nil, err
	}
	return &target{process: p, models: same}, nil
}

// proxy starts nginx.
func (s *setting) proxy(ctx context.Context, dir, up string) (*target, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, up, addr), 0o600); err != nil {
		return nil, err
	}
	p, err := start(ctx, dir, "nginx", addr, nil, s.nginx, "-c", conf)
	if err != nil {
		return nil, err
	}
	return &target{process: p, models: same}, nil
}

// other starts the peer, set up as its documentation recommends for an upstream
// of one's own.
func (s *setting) other(ctx context.Context, dir, up string) (*target, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, dir, "Portkey 1.15.2", addr, nil, "node",
		filepath.Join(s.peer, "node_modules/@portkey-ai/gateway/build/start-server.js"), "--port="+port, "--headless")
	if err != nil {
		return nil, err
	}
	return &target{process: p, models: same, slow: true, header: http.Header{
		"Authorization":         {"Bearer k"},
		"X-Portkey-Provider":    {"openai"},
		"X-Portkey-Custom-Host": {"http://" + up + "/v1"},
	}}, nil
}
