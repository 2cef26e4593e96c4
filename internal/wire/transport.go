package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// ClockError says that one of our own clocks ran out. A provider gives it as
// the cause when it cancels an attempt.
type ClockError struct {
	// Clock is "dial", "headers", "first event", "liveness", "progress",
	// "rate" or "total".
	Clock string
	// Limit is what it was set to.
	Limit time.Duration
}

// The clocks of an attempt.
const (
	ClockDial       = "dial"
	ClockHeaders    = "headers"
	ClockFirstEvent = "first event"
	ClockLiveness   = "liveness"
	ClockProgress   = "progress"
	ClockRate       = "rate"
	ClockTotal      = "total"
)

func (e *ClockError) Error() string {
	switch e.Clock {
	case ClockDial:
		return fmt.Sprintf("no connection within %v", e.Limit)
	case ClockHeaders:
		return fmt.Sprintf("no answer within %v", e.Limit)
	case ClockFirstEvent:
		return fmt.Sprintf("nothing of the answer within %v", e.Limit)
	case ClockLiveness:
		return fmt.Sprintf("the stream was silent for %v", e.Limit)
	case ClockProgress:
		return fmt.Sprintf("the stream was alive but made no progress for %v", e.Limit)
	case ClockRate:
		return fmt.Sprintf("the stream was slower than allowed for %v", e.Limit)
	}
	return fmt.Sprintf("the attempt took longer than %v", e.Limit)
}

// Timeout makes it a timeout in the sense of package net.
func (e *ClockError) Timeout() bool { return true }

// maxChain bounds how deep the chain of causes is walked.
const maxChain = 5

// Transport turns what Go reports about a connection into a Fault. ctx is the
// caller's own context (or one derived from it whose cause is a *ClockError):
// it is looked at first, because a dial timeout matches
// context.DeadlineExceeded just as the caller's deadline does. phase is how
// far the attempt had come.
func Transport(ctx context.Context, err error, phase ninelives.Phase) *ninelives.Fault {
	f := &ninelives.Fault{Class: ninelives.ClassNetwork, Phase: phase, Billed: ninelives.BilledMaybe}
	switch phase {
	case ninelives.PhasePrepare, ninelives.PhaseDial:
		f.Billed = ninelives.BilledNo
	}
	if own := ownCause(ctx, err); own != nil {
		var clock *ClockError
		f.Err, f.Message = own, own.Error()
		if !errors.As(own, &clock) {
			f.Class = ninelives.ClassCanceled
			f.Message = "canceled by the caller"
			if errors.Is(own, context.DeadlineExceeded) {
				f.Message = "the caller's deadline has passed"
			}
		} else if clock.Clock != ClockDial {
			f.Class = ninelives.ClassTimeout
		}
		f.Scope = scopeOf(f.Class)
		return f
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	chain := causes(err)
	f.Err = chain[0]
	f.Message = Redact(chain[0].Error())
	judgeTransport(f, chain, phase)
	if f.Scope == "" {
		f.Scope = scopeOf(f.Class)
	}
	return f
}

// ownCause is why we ourselves ended the attempt, if we did.
func ownCause(ctx context.Context, err error) error {
	var clock *ClockError
	for _, e := range causes(err) {
		if c, ok := e.(*ClockError); ok {
			clock = c
		}
	}
	if ctx != nil && ctx.Err() != nil {
		cause := context.Cause(ctx)
		if clock != nil && (cause == context.Canceled || errors.As(cause, new(*ClockError))) {
			return clock // we cancelled because of the clock
		}
		return cause
	}
	if clock != nil {
		return clock
	}
	return nil
}

// causes lists an error and what it wraps, at most five deep, without the URL
// that net/http puts around it: a URL may hold a key.
func causes(err error) []error {
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		err = u.Err
	}
	var chain []error
	for err != nil && len(chain) < maxChain {
		chain = append(chain, err)
		switch w := err.(type) {
		case interface{ Unwrap() error }:
			err = w.Unwrap()
		case interface{ Unwrap() []error }:
			err = nil
			if list := w.Unwrap(); len(list) > 0 {
				err = list[0]
			}
		default:
			err = nil
		}
	}
	return chain
}

func judgeTransport(f *ninelives.Fault, chain []error, phase ninelives.Phase) {
	begun := phase == ninelives.PhaseFirstToken || phase == ninelives.PhaseStream
	for _, e := range chain {
		if trusted(f, e) {
			return
		}
	}
	text := strings.ToLower(chain[0].Error())
	switch {
	case strings.Contains(text, "goaway"):
		// A drain loses nothing but time; a call for calm is an overload.
		if strings.Contains(text, "enhance_your_calm") {
			f.Class = ninelives.ClassOverloaded
		} else if begun && !strings.Contains(text, "no_error") && !strings.Contains(text, "graceful") {
			f.Class = ninelives.ClassStreamBroken
		}
	case strings.Contains(text, "stream error") || strings.Contains(text, "rst_stream"):
		switch {
		case strings.Contains(text, "enhance_your_calm"):
			f.Class = ninelives.ClassOverloaded
		case strings.Contains(text, "refused_stream"):
		case begun:
			f.Class = ninelives.ClassStreamBroken
		}
	case strings.Contains(text, "unsupported protocol scheme"), strings.Contains(text, "no host in request url"), strings.Contains(text, "invalid url"):
		f.Class, f.Final, f.Scope = ninelives.ClassFormat, true, ninelives.ScopeHost
		f.Hint = "check the base URL"
	case strings.Contains(text, "server gave http response to https client"), strings.Contains(text, "does not look like a tls handshake"):
		f.Final = true
		f.Hint = "the server speaks plain HTTP: use http:// in the base URL"
	case strings.Contains(text, "proxyconnect"), strings.Contains(text, "proxy authentication"):
		f.Hint = "check the proxy settings (HTTPS_PROXY, NO_PROXY)"
	case begun:
		f.Class = ninelives.ClassStreamBroken
	case strings.Contains(text, "timeout awaiting response headers"), isTimeout(chain) && phase != ninelives.PhaseDial && !strings.Contains(text, "tls handshake"):
		f.Class = ninelives.ClassTimeout
	}
}

// trusted judges the error types that leave no doubt.
func trusted(f *ninelives.Fault, e error) bool {
	switch e := e.(type) {
	case *net.DNSError:
		f.Final = e.IsNotFound
		f.Hint = "check the host name and the network"
		return true
	case *tls.CertificateVerificationError, x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError, *x509.UnknownAuthorityError, *x509.HostnameError, *x509.CertificateInvalidError:
		f.Final = true
		f.Hint = "the server's certificate is not trusted: check the host name, the clock, or name the right CA"
		return true
	case tls.RecordHeaderError:
		f.Final = true
		f.Hint = "the server does not speak TLS: use http:// in the base URL"
		return true
	case syscall.Errno:
		if e == syscall.ECONNREFUSED {
			f.Hint = "is the server running?"
			return true
		}
	}
	return false
}

func isTimeout(chain []error) bool {
	for _, e := range chain {
		if t, ok := e.(interface{ Timeout() bool }); ok && t.Timeout() {
			return true
		}
	}
	return false
}
