package tool

import (
	"fmt"
	"net/netip"
)

// notPublic are the networks that a page must not lead to: what answers there
// trusts whoever can reach it. Source: the IANA registries of special-purpose
// addresses (RFC 6890), and the metadata services of clouds, most of which lie
// in these networks anyhow.
var notPublic = []struct{ prefix, what string }{
	{"0.0.0.0/8", "this network"},
	{"10.0.0.0/8", "a private network"},
	{"100.64.0.0/10", "a carrier's private network"},
	{"127.0.0.0/8", "this machine"},
	{"168.63.129.16/32", "a cloud's metadata service"},
	{"169.254.0.0/16", "a link-local address, as of a cloud's metadata service"},
	{"172.16.0.0/12", "a private network"},
	{"192.0.0.0/24", "a reserved network"},
	{"192.0.2.0/24", "a reserved network"},
	{"192.88.99.0/24", "a reserved network"},
	{"192.168.0.0/16", "a private network"},
	{"198.18.0.0/15", "a reserved network"},
	{"198.51.100.0/24", "a reserved network"},
	{"203.0.113.0/24", "a reserved network"},
	{"224.0.0.0/4", "a multicast address"},
	{"240.0.0.0/4", "a reserved network"},
	{"::1/128", "this machine"},
	{"64:ff9b::/96", "a translated IPv4 address"},
	{"64:ff9b:1::/48", "a translated IPv4 address"},
	{"2001::/23", "a reserved network"}, // Teredo and others
	{"2001:db8::/32", "a reserved network"},
	{"2002::/16", "a translated IPv4 address"},
	{"3fff::/20", "a reserved network"},
	{"fc00::/7", "a private network"},
	{"fe80::/10", "a link-local address"},
	{"ff00::/8", "a multicast address"},
}

// private says what kind of place an address is that is not on the public
// internet; nil if it is.
func private(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	for _, n := range notPublic {
		if netip.MustParsePrefix(n.prefix).Contains(a) {
			return fmt.Errorf("%s is %s", a, n.what)
		}
	}
	// All public IPv6 addresses lie in one eighth of the space.
	if !a.IsValid() || a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) {
		return fmt.Errorf("%s is not on the public internet", a)
	}
	return nil
}
