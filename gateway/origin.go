package gateway

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
)

// origin keeps web pages from using a gateway that asks nobody for a key. A
// page of somebody else, open in the user's browser, can send requests to
// 127.0.0.1 as well as the user can; and by a name of its own that it lets
// point to 127.0.0.1 (DNS rebinding) it can even read the answers. So without
// client keys
//
//   - on a loopback address, the request's Host must be a loopback name or one
//     of names;
//   - a request that changes or costs something and that a browser marks as
//     another site's (Sec-Fetch-Site, Origin) is refused.
//
// Where keys are asked for, a page would have to know one.
type origin struct {
	// rebound says that Host is looked at: the address is a loopback one. It cannot
	// be known by which names an exposed one is called, and no browser can ask a
	// unix socket.
	rebound bool
	names   []string
	cross   *http.CrossOriginProtection
}

func newOrigin(listen string, names []string) *origin {
	return &origin{
		rebound: !Exposed(listen) && !strings.HasPrefix(listen, unixPrefix),
		names:   names,
		cross:   http.NewCrossOriginProtection(),
	}
}

// check says why a request is refused with 403 where no client key is asked
// for; nil lets it pass.
func (o *origin) check(r *http.Request) error {
	if o.rebound && !o.known(r.Host) {
		return errors.New("this gateway listens on a loopback address and is not called by that name: use 127.0.0.1 or localhost, or add the name to its configuration")
	}
	if o.cross.Check(r) != nil {
		return errors.New("a web page of another site may not use this gateway: give it client keys if one should")
	}
	return nil
}

func (o *origin) known(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return loopbackName(host) || slices.ContainsFunc(o.names, func(name string) bool { return strings.EqualFold(name, host) })
}
