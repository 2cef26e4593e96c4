// Package conformance holds the tests that run whole corpora against the whole
// product: faults as providers really send them, served over real connections.
// The corpora lie beside the checkout and are read in place; without them the
// tests skip.
package conformance
