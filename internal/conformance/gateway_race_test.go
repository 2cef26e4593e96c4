//go:build race

package conformance_test

// underRace plays fewer pairs of protocols.
const underRace = true
