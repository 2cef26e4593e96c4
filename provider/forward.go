package provider

import (
	"context"
	"net/http"
)

type forwardKey struct{}

// Forward gives a context whose requests carry these headers as well, such as
// the trace that they belong to. They never replace one that is sent anyway.
func Forward(ctx context.Context, h http.Header) context.Context {
	if len(h) == 0 {
		return ctx
	}
	return context.WithValue(ctx, forwardKey{}, h)
}

// forward adds the headers of the context.
func forward(ctx context.Context, to http.Header) {
	h, _ := ctx.Value(forwardKey{}).(http.Header)
	for name, values := range h {
		if _, set := to[name]; !set {
			to[name] = values
		}
	}
}
