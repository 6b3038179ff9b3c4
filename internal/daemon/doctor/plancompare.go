package doctor

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
)

// compare looks at what must be equal, or must not be, between plans.
func (d *draft) compare() {
	mark := len(d.Checks)
	for _, p := range d.plans[1:] {
		d.differ(d.plans[0], p)
	}
	if d.since(mark) && len(d.plans) > 1 {
		d.sound("settings", "", "cluster, voters and timers are the same in all %d", len(d.plans))
	}
	d.uniqueNames()
	d.votersPlanned()
	d.portsApart()
	d.translation()
}

func (d *draft) differ(a, b Plan) {
	where := fmt.Sprintf("%s - %s", a.File, b.File)
	if a.Config.Cluster != b.Config.Cluster {
		d.problem(Fail, "wrong-cluster", "settings", where, "the cluster is %q in the one and %q in the other", a.Config.Cluster, b.Config.Cluster)
	}
	va, vb := sorted(a.Config.Voters), sorted(b.Config.Voters)
	if !slices.Equal(va, vb) {
		d.problem(Fail, "voters-differ", "voters", where, "the voters are %s in the one and %s in the other", list(va), list(vb))
	}
	sa, sb := a.Config.Agreed(), b.Config.Agreed()
	for _, name := range slices.Sorted(maps.Keys(sa)) {
		if sa[name] != sb[name] {
			d.problem(Fail, "settings-differ", "settings", where, "%s is %s in the one and %s in the other", name, sa[name], sb[name])
		}
	}
}

func sorted(ids []cluster.NodeID) []cluster.NodeID { return slices.Sorted(slices.Values(ids)) }

// uniqueNames finds names, and directories on one machine, that are used twice.
func (d *draft) uniqueNames() {
	mark := len(d.Checks)
	for i, a := range d.plans {
		for _, b := range d.plans[i+1:] {
			where := fmt.Sprintf("%s - %s", a.File, b.File)
			if a.Config.Node == b.Config.Node {
				d.problem(Fail, "name-twice", "names", where, "both are node %s", a.Config.Node)
			}
			if d.bothHere(a, b) && sameDir(a.Config.DataDir, b.Config.DataDir) {
				d.problem(Fail, DataDirOwner, "data dirs", where, "both have %s", a.Config.DataDir)
			}
		}
	}
	if d.since(mark) && len(d.plans) > 1 {
		d.sound("names", "", "each of the %d nodes has a name of its own", len(d.plans))
	}
}

func sameDir(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

func (d *draft) bothHere(a, b Plan) bool {
	is := func(p Plan) bool {
		return slices.ContainsFunc(d.here, func(h Plan) bool { return h.File == p.File })
	}
	return is(a) && is(b)
}

// votersPlanned asks who will run each voter. A single file says nothing of it.
func (d *draft) votersPlanned() {
	voters := d.plans[0].Config.Voters
	d.parity(len(voters), list(voters))
	for _, id := range voters {
		planned := slices.ContainsFunc(d.plans, func(p Plan) bool { return p.Config.Node == id })
		if !planned && !d.found[id] && len(d.plans) > 1 {
			d.problem(Warn, VoterMissing, "voters", string(id), "no file is that node's, and no node that runs knows it")
		}
	}
}

// portsApart finds two listeners that would get in each other's way.
func (d *draft) portsApart() {
	type listener struct {
		Plan
		endpoint
	}
	var all []listener
	for _, p := range d.plans {
		for _, e := range p.endpoints() {
			all = append(all, listener{p, e})
		}
	}
	mark := len(d.Checks)
	for i, a := range all {
		for _, b := range all[i+1:] {
			near := a.File == b.File || d.bothHere(a.Plan, b.Plan) || samePlace(a.addr, b.addr)
			if near && clash(a.addr, b.addr) {
				d.problem(Fail, PortClash, "ports", fmt.Sprintf("%s - %s", a.File, b.File), "%s %s of the one and %s %s of the other", a.flag, a.addr, b.flag, b.addr)
			}
		}
	}
	if d.since(mark) {
		d.sound("ports", "", "no two listeners get in each other's way")
	}
}

// samePlace reports whether two addresses are of one machine for sure.
func samePlace(a, b string) bool {
	ha, hb := hostOf(a), hostOf(b)
	return ha.IsValid() && ha == hb && !ha.IsUnspecified() && !ha.IsLoopback()
}

// clash reports whether one machine cannot listen on both.
func clash(a, b string) bool {
	_, pa, _ := net.SplitHostPort(a)
	_, pb, _ := net.SplitHostPort(b)
	ha, hb := hostOf(a), hostOf(b)
	return pa == pb && pa != "0" && (ha == hb || ha.IsUnspecified() || hb.IsUnspecified())
}

// translation warns of addresses that are told differently than they are bound.
func (d *draft) translation() {
	for _, p := range d.plans {
		for _, e := range p.endpoints() {
			bound, told := hostOf(e.addr), hostOf(e.advertise)
			translated := told.IsValid() && bound.IsValid() && !bound.IsUnspecified() && bound != told
			if translated && !p.Config.NoDeathProof {
				d.problem(Warn, DeathProof, "addresses", p.File, "%s is %s, and others are told %s: something between translates it", e.flag, e.addr, e.advertise)
			}
		}
	}
}
