// Package heal makes a call land on its feet: retry, failover, repair,
// continuation and rescue as one decision over one budget.
//
//	model := heal.New(claude, heal.Fallback(gpt), heal.Deadline(30*time.Second))
//	resp, err := ninelives.Generate(ctx, model, ninelives.Prompt("Why do cats land on their feet?"))
//
// decide.go is the decider: a pure function from the policy, the history of a
// call's attempts, the health of its candidates and the time left to what is
// done next. It is spread by question: whom to ask (choose.go), what may still
// be spent (spend.go), what an answer's content asks for (content.go).
// judge.go judges answers. policy.go and presets.go are the numbers.
//
// driver.go and call.go do what is decided; take.go is one attempt, hedge.go a
// race of two; rescue.go, joint.go and seam.go continue what was cut; finish.go
// ends the call. health.go remembers how candidates fare. Nothing else in this
// module retries, backs off or chooses a candidate.
//
// docs/healing.md and docs/health.md have the pictures.
package heal
