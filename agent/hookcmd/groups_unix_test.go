//go:build unix

package hookcmd

import "testing"

func needsGroups(*testing.T) {}
