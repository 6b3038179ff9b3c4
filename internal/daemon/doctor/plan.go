package doctor

import (
	"context"
	"net"
	"net/netip"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
)

// Plan is the configuration of one node.
type Plan struct {
	File      string         // what it is called in the report
	Config    cluster.Config // as far as it can be read
	AdminAddr string         // where its HTTP side is to listen; "" for nowhere
	Problem   error          // all that is wrong with it by itself; joined errors are told one by one
	// Running is what the node says if it runs already; nil if it does not.
	Running *cluster.Status
}

// draft is a planned cluster under examination.
type draft struct {
	Report
	plans []Plan // those that can be compared, in the order given
	here  []Plan // those of this machine
	own   map[netip.Addr]bool
	found map[cluster.NodeID]bool // nodes of the cluster that run, with a file or without
}

// ExaminePlans reports what is wrong with a planned cluster: with each plan, between
// them, and with what this machine has for those that are to run on it: those
// whose addresses are its own, and of those that listen on every interface the
// first. running are the nodes of the cluster that run already, by anybody's
// account. Attempts to connect end with ctx.
func ExaminePlans(ctx context.Context, plans []Plan, running []cluster.NodeID) Report {
	d := &draft{own: ownAddrs(), found: map[cluster.NodeID]bool{}}
	for _, id := range running {
		d.found[id] = true
	}
	for _, p := range plans {
		if d.readable(p) {
			d.plans = append(d.plans, p)
		}
	}
	for i, p := range d.plans {
		if len(plans) == 1 || d.isHere(p, i) {
			d.here = append(d.here, p)
		}
	}
	if len(d.plans) > 0 {
		d.compare()
		d.join(ctx)
	}
	for _, p := range d.here {
		d.onThisMachine(ctx, p)
	}
	d.machine()
	return d.Report
}

// readable notes what is wrong with a plan by itself, and reports whether nothing is.
func (d *draft) readable(p Plan) bool {
	problems := each(p.Problem)
	for _, err := range problems {
		d.problem(Fail, ConfigInvalid, "file", p.File, "%s", err)
	}
	if len(problems) == 0 {
		d.sound("file", p.File, "node %s; nothing is wrong with it by itself", p.Config.Node)
	}
	return len(problems) == 0
}

// each takes joined errors apart.
func each(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, each(e)...)
	}
	return all
}

// isHere reports whether the i-th plan is for this machine.
func (d *draft) isHere(p Plan, i int) bool {
	bound := hostOf(p.Config.GossipAddr)
	if bound.IsValid() && !bound.IsUnspecified() {
		return d.isOwn(bound)
	}
	told := hostOf(p.Config.AdvertiseGossip)
	return i == 0 || told.IsValid() && d.isOwn(told)
}

func (d *draft) isOwn(ip netip.Addr) bool { return ip.IsLoopback() || d.own[ip] }

// hostOf is the IP address in host:port; invalid if there is none.
func hostOf(addr string) netip.Addr {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.Addr{}
	}
	ip, _ := netip.ParseAddr(host)
	return ip.Unmap()
}

func ownAddrs() map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	addrs, _ := net.InterfaceAddrs() // without them, only loopback is this machine's
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own[p.Addr().Unmap()] = true
		}
	}
	return own
}

// endpoint is where a node listens.
type endpoint struct {
	flag, addr string
	udp        bool // as well as TCP
	advertise  string
}

func (p Plan) endpoints() []endpoint {
	all := []endpoint{
		{"gossip-addr", p.Config.GossipAddr, true, p.Config.AdvertiseGossip},
		{"mesh-addr", p.Config.MeshAddr, false, p.Config.AdvertiseMesh},
		{"admin-addr", p.AdminAddr, false, ""},
	}
	return slices.DeleteFunc(all, func(e endpoint) bool { return e.addr == "" })
}
