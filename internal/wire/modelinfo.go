package wire

import "time"

// ModelInfo is a model as it stands in a list of models that clients ask for.
type ModelInfo struct {
	// ID is the name that requests use.
	ID string
	// Name is the name for people; empty means the ID.
	Name string
	// Created is when the model came out; zero means unknown.
	Created time.Time
	// Window and MaxOutput are the limits in tokens; 0 means unknown.
	Window    int
	MaxOutput int
	// Owner is whose model it is; empty means unknown.
	Owner string
}
