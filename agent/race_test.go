//go:build race

package agent

// underRace leaves out what starts hundreds of processes: they are slow with the
// race detector, which sees none of what they share.
const underRace = true
