// Package heal makes a call land on its feet: retry, failover, repair,
// continuation and rescue as one decision over one budget.
//
// decide.go is the decider: a pure function from the policy, the history of a
// call's attempts, the health of its candidates and the time left to what is
// done next. driver.go does it. health.go remembers how candidates fare.
// Nothing else in this module retries, backs off or chooses a candidate.
package heal
