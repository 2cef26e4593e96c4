package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/config"
	"github.com/ninelives-ai/ninelives/gateway"
)

// serving is a gateway being started.
type serving struct {
	p        *process
	choice   choice
	listen   []string
	insecure bool
	quiet    bool
	drain    time.Duration

	warnings []string
}

func (p *process) serve() *cobra.Command {
	v := &serving{p: p}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "The gateway: heal the calls of any client, in any language",
		Long: `Answers on an address of this machine as OpenAI, Anthropic and Gemini do, and
heals every call on its way to the models. Point a client's base URL at it.

Whom it asks is found as for ninelives ask: flags, ninelives.yaml, the keys in
the environment, servers on this machine; without any, a simulator answers.
The configuration is watched: a changed file is in force for new calls, a bad
one leaves the last good one in force and says so. See docs/gateway.md.`,
		Example: `  ninelives serve
  ninelives serve --model anthropic/claude-sonnet-4-6 --fallback openai/gpt-5.4
  ninelives serve --listen unix:/run/ninelives.sock`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(v.choice.mistakes(cmd)...); err != nil {
				return err
			}
			return v.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&v.listen, "listen", nil, "address and port, or unix:/path (repeatable; default "+config.DefaultListen+")")
	f.BoolVar(&v.insecure, "insecure", false, "allow an address that other machines can reach without client keys and TLS")
	f.StringVar(&v.choice.model, "model", "", "the first model to ask, such as anthropic/claude-sonnet-4-6")
	f.StringArrayVar(&v.choice.fallbacks, "fallback", nil, "a model to ask when those before it cannot answer (repeatable)")
	f.StringVar(&v.choice.config, "config", "", "configuration file in place of the usual ones")
	f.BoolVar(&v.quiet, "quiet", false, "log only what went wrong")
	f.DurationVar(&v.drain, "drain", gateway.DrainTime, "how long running calls may take to finish when it is stopped")
	return cmd
}

// started is a gateway that listens.
type started struct {
	server    *gateway.Server
	listeners []net.Listener
	url       string
	simulated bool
	routes    []gateway.Route
	keys      bool
	close     func()
}

// ballast is heap that is never touched, and so never resident. A gateway holds
// little and passes much on: without it a fifth of its processor time goes into
// collecting a few megabytes again and again. It counts as in use, so that the
// heap may grow by as much before it is collected.
const ballast = 24 << 20

// run serves until the context ends.
func (v *serving) run(ctx context.Context) error {
	untouched := make([]byte, ballast)
	defer runtime.KeepAlive(untouched)
	log := v.log()
	watched, stop := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	unwatched := config.Watch(watched, v.paths(), func() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	})
	defer func() { stop(); <-unwatched }()
	g, err := v.start(ctx, log)
	if err != nil {
		return err
	}
	defer g.close()
	v.greet(g)
	reloads := make(chan struct{})
	go func() {
		defer close(reloads)
		for {
			select {
			case <-changed:
				v.reload(watched, g, log)
			case <-watched.Done():
				return
			}
		}
	}()
	defer func() { stop(); <-reloads }()
	return g.server.Serve(ctx, v.drain, g.listeners...)
}

// log is where the gateway logs: a JSON line per call, on stderr.
func (v *serving) log() *slog.Logger {
	level := slog.LevelInfo
	if v.quiet {
		level = slog.LevelWarn
	}
	return slog.New(slog.NewJSONHandler(v.p.stderr, &slog.HandlerOptions{Level: level}))
}

// paths are the files that are read.
func (v *serving) paths() []string {
	if v.choice.config != "" {
		return []string{v.choice.config}
	}
	return config.Paths(cmp.Or(v.choice.dir, "."), v.p.env)
}

// read reads the configuration.
func (v *serving) read(ctx context.Context) (gateway.Settings, config.Serving, error) {
	settings, problems, err := v.p.settings(v.choice)
	if err != nil {
		return gateway.Settings{}, config.Serving{}, err
	}
	settings.Use(v.choice.model, v.choice.fallbacks)
	if err := settings.UseListen(v.listen, v.insecure); err != nil {
		return gateway.Settings{}, config.Serving{}, fmt.Errorf("--listen: %w", err)
	}
	set, around, more, err := settings.Gateway(ctx, v.p.env)
	v.warnings = nil
	for _, problem := range append(problems, more...) {
		v.warnings = append(v.warnings, problem.Error())
	}
	return set, around, err
}

// start makes the gateway and opens its addresses.
func (v *serving) start(ctx context.Context, log *slog.Logger) (_ *started, err error) {
	g := &started{}
	var closers []func()
	g.close = func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	set, around, err := v.read(ctx)
	switch {
	case errors.Is(err, config.ErrNoModel) && (v.choice.model != "" || len(v.warnings) > 0):
		return nil, &usageError{errors.Join(err, errors.New(strings.Join(v.warnings, "\n")))}
	case errors.Is(err, config.ErrNoModel):
		models, end, err := demo()
		if err != nil {
			return nil, err
		}
		closers = append(closers, end)
		g.simulated = true
		for _, m := range models {
			set.Routes[0].Targets = append(set.Routes[0].Targets, gateway.Target{Model: m})
		}
	case err != nil:
		return nil, &usageError{err}
	}
	g.routes, g.keys = set.Routes, len(set.Keys) > 0

	options := gateway.Options{Log: log, Version: buildVersion()}
	if set.Journal.Off {
		options.NoJournal = errors.New("it was switched off when the gateway started: start it again to keep calls")
	} else {
		kept := v.p.openSealed("call", around.JournalKey)
		if kept.j == nil && set.Journal.Refuse {
			return nil, kept.err
		}
		v.warnings = append(v.warnings, kept.warnings...)
		closers = append(closers, kept.close)
		options.Journal, options.NoJournal = kept.j, kept.err
	}
	tracer, end := v.p.tracer(ctx, log)
	closers = append(closers, end)
	options.Tracer = tracer

	addresses := around.Listen
	secure, err := certificate(around)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if err := gateway.MayListen(address, g.keys, secure != nil, around.Insecure); err != nil {
			return nil, usagef("--listen %s: %v", address, err)
		}
		l, err := gateway.Listen(ctx, address, secure, set.Limits.Connections)
		if err != nil {
			return nil, usagef("%v", err)
		}
		closers = append(closers, func() { _ = l.Close() }) // closed by then, unless the start failed
		g.listeners = append(g.listeners, l)
	}
	g.url = urlOf(g.listeners[0], secure != nil)
	options.Listen = addresses[0]
	if tcp, ok := g.listeners[0].Addr().(*net.TCPAddr); ok {
		options.Listen = tcp.String()
	}
	g.server = gateway.New(set, options)
	closers = append(closers, g.server.Close)
	return g, nil
}

// certificate is what connections are secured with; nil for none.
func certificate(around config.Serving) (*tls.Config, error) {
	if around.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(around.Cert, around.Key)
	if err != nil {
		return nil, usagef("the certificate cannot be used: %v", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}, nil
}

// urlOf is where a listener is reached from this machine.
func urlOf(l net.Listener, secured bool) string {
	scheme := "http://"
	if secured {
		scheme = "https://"
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "unix:" + l.Addr().String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// reload puts a changed configuration in force, or says why the last good one
// stays.
func (v *serving) reload(ctx context.Context, g *started, log *slog.Logger) {
	set, _, err := v.read(ctx)
	if errors.Is(err, config.ErrNoModel) && g.simulated {
		set.Routes[0].Targets, err = g.routes[0].Targets, nil
	}
	g.server.Reloaded(err)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			log.Error("the configuration has changed and cannot be used: the last good one stays in force", "problem", line)
		}
		return
	}
	for _, warning := range v.warnings {
		log.Warn("configuration", "problem", warning)
	}
	g.server.Reload(set)
	log.Info("the configuration has changed and is in force")
}

// greet says what listens, who answers, and what to paste.
func (v *serving) greet(g *started) {
	w := v.p.stdout
	fmt.Fprintf(w, "ninelives gateway on %s\n", g.url)
	for _, route := range g.routes {
		var names []string
		for _, t := range route.Targets {
			names = append(names, t.Model.Name())
		}
		fmt.Fprintf(w, "  %s: %s\n", route.Name, few(names, ", then "))
	}
	if g.simulated {
		fmt.Fprintf(w, "\n%s\n", demoWords)
	}
	for _, warning := range v.warnings {
		fmt.Fprintln(v.p.stderr, "ninelives: "+warning)
	}
	key := "none"
	if g.keys {
		key = "…" // its own
	}
	if base, ok := strings.CutPrefix(g.url, "unix:"); ok {
		fmt.Fprintf(w, "\n  curl --unix-socket %s http://localhost/healthz\n\n", base)
		return
	}
	fmt.Fprintf(w, "\n  export OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=%s\n", g.url, key)
	fmt.Fprintf(w, "  export ANTHROPIC_BASE_URL=%s ANTHROPIC_API_KEY=%s\n\n", g.url, key)
	fmt.Fprintf(w, "status: %s/   metrics: %s/metrics\n", g.url, g.url)
}

// startGateway starts a gateway for the time of another program, on a free port
// of this machine. stop ends it.
func (p *process) startGateway(ctx context.Context) (url string, stop func(), err error) {
	v := &serving{p: p, listen: []string{"127.0.0.1:0"}, quiet: true}
	quiet := *p
	quiet.stdout = io.Discard
	file, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return "", nil, err
	}
	log := slog.New(slog.NewJSONHandler(file, nil))
	g, err := v.start(ctx, log)
	if err != nil {
		_ = file.Close()
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.server.Serve(ctx, time.Second, g.listeners...) // its end is the program's
	}()
	return g.url, func() {
		cancel()
		<-ended
		g.close()
		_ = file.Close()
	}, nil
}
