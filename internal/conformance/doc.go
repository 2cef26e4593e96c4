// Package conformance holds the tests that run the whole product: corpora of
// faults as providers really send them, the scenarios of the source designs,
// and an agent with its files and its journal before servers that refuse what
// the real ones refuse. The corpora lie beside the checkout and are read in
// place; without them their tests skip.
package conformance
