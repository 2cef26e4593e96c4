// Package compat holds the wire of Nine Lives against the official SDKs of the
// providers: what their clients make of real answers, what their types make of
// the requests that we write, and what their clients make of the answers that
// we write as a server. It is a module of its own, so that the SDKs are no
// dependency of the product.
//
// The SDKs are oracles, not authorities: they take a clean end of a cut stream
// for a success and drop fields that they do not know. Where one of them
// differs from us on a recorded answer, the recording's own expectation decides.
package compat
