package provider

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Consent says which candidates a chain may ask. The zero value is the strict
// default.
//
// Source: design section 3, "Consent".
type Consent struct {
	// RemoteFallback lets a chain that begins on this machine leave it.
	RemoteFallback bool
	// Vendors are the only providers that may be asked; empty means all.
	Vendors []string
}

// Judge gives, for every candidate of a chain in order, why it must not be
// asked; empty where it may. The first one that may be asked is where the
// chain begins.
func (c Consent) Judge(chain []ninelives.Candidate) []string {
	reasons := make([]string, len(chain))
	begun, local := false, false
	for i, candidate := range chain {
		switch {
		case !c.allows(candidate.Provider):
			reasons[i] = candidate.Provider + " is not among the allowed vendors (" + strings.Join(c.Vendors, ", ") + ")"
		case begun && local && !candidate.Local && !c.RemoteFallback:
			reasons[i] = "the chain begins on this machine and must not leave it unless the configuration allows a remote fallback"
		default:
			if !begun {
				begun, local = true, candidate.Local
			}
		}
	}
	return reasons
}

func (c Consent) allows(provider string) bool {
	if len(c.Vendors) == 0 {
		return true
	}
	return slices.ContainsFunc(c.Vendors, func(name string) bool {
		if v, ok := vendorNamed(name); ok {
			name = v.name
		}
		return strings.EqualFold(name, provider)
	})
}
