package tool

// judgeCommand judges a shell command.
func (p Permissions) judgeCommand(spec Spec, need Need) Verdict {
	what := "runs " + shown(need.Target)
	switch {
	case p.Profile == ProfileRestricted:
		return Verdict{Action: ActionDeny, Why: what + ", and the restricted profile runs no commands"}
	case p.Mode == ModePlan:
		return Verdict{Action: ActionDeny, Why: what + ", and plan mode changes nothing"}
	case p.Mode == ModeFull:
		return Verdict{Action: ActionAllow, Why: what}
	}
	return Verdict{Action: ActionAsk, Why: what}
}
