package chaos

func code(a *ask) (string, []Call) { return "", nil }
