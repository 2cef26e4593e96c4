//go:build race

package main

// underRace leaves out what runs many calls through other processes: the race
// detector sees none of what they share, and makes them slow.
const underRace = true
