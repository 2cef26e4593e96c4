// Command gateway measures what a gateway costs, beside plain relays and another
// gateway, all of them in one run and by turns. See bench/gateway.sh.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // who reads only the first lines leaves no process behind
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench/gateway: "+err.Error())
		os.Exit(1)
	}
}

// run is the whole command. The upstream and the floor are this program too, as
// processes of their own, so that their cost is not in anybody else's.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "mock":
			return serve(args[1:], mock())
		case "relay":
			return serve(args[1:], nil)
		}
	}
	var s setting
	f := flag.NewFlagSet("bench/gateway", flag.ContinueOnError)
	f.StringVar(&s.ninelives, "ninelives", "", "the binary to measure")
	f.StringVar(&s.nginx, "nginx", "", "nginx's binary; empty leaves it out")
	f.StringVar(&s.peer, "peer", "", "directory with the peer's node_modules; empty leaves it out")
	f.DurationVar(&s.slice, "slice", time.Second, "how long each target is loaded in each round")
	f.IntVar(&s.rounds, "rounds", 5, "rounds of load, in which the targets take turns")
	f.IntVar(&s.singles, "singles", 400, "requests one at a time, per target and size")
	f.IntVar(&s.streams, "streams", 256, "streams at once")
	if err := f.Parse(args); err != nil {
		return err
	}
	if s.ninelives == "" {
		return fmt.Errorf("nothing to measure: name the binary with -ninelives")
	}
	return s.measure(ctx, os.Stdout)
}
