// Package diagnosis turns what a mesh sees of its peers into findings: what a person must
// fix. It changes no link and no election.
package diagnosis

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/netmesh"
)

const (
	maxFindings = 1024        // kept at a time
	maxRefused  = 64          // of them those that anybody who connects can cause
	refusedLife = time.Minute // how long a refusal that does not come again counts
	claimLife   = 10 * time.Minute
	maxDetail   = 1 << 10 // bytes of what others report
)

// Config says what is right on this node.
type Config struct {
	Node     elector.NodeID
	Voters   []elector.NodeID  // compared with those of each peer; none: not compared
	Lost     []elector.NodeID  // declared lost on this node: not compared
	Settings map[string]string // that must be equal on every node; at most 14
	// MaxDriftPPM is by how many parts per million the rates of two nodes' clocks
	// may differ; 0: they are measured and not judged.
	MaxDriftPPM int64
	Logger      hclog.Logger
}

// Diagnosis knows what is wrong at the moment. It is safe for concurrent use.
type Diagnosis struct {
	cfg Config

	mu     sync.Mutex // taken last: under it nothing is called
	all    map[key]*found
	logged limit.Log[key]
	clocks map[elector.NodeID]*clockRate // of the peers that are linked
	idle   map[elector.NodeID]string     // why a peer that is linked does not stand
}

type key struct {
	kind findings.Kind
	peer elector.NodeID
}

type found struct {
	findings.Finding

	seen time.Time
	life time.Duration // it expires so long after seen; 0: with the link
}

// New returns a Diagnosis that has found nothing.
func New(cfg Config) *Diagnosis {
	return &Diagnosis{
		cfg: cfg, all: map[key]*found{},
		clocks: map[elector.NodeID]*clockRate{}, idle: map[elector.NodeID]string{},
	}
}

// Findings returns what is wrong at the moment between this member and others,
// sorted by peer and kind, at most 1024. It is empty where all is well.
func (d *Diagnosis) Findings() []findings.Finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(time.Now())
	all := make([]findings.Finding, 0, len(d.all))
	for _, f := range d.all {
		all = append(all, f.Finding)
	}
	kinds := findings.Kinds()
	slices.SortFunc(all, func(a, b findings.Finding) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer),
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)))
	})
	return all
}

// Clocks returns how the clocks of the peers that are linked compare with this node's.
func (d *Diagnosis) Clocks() map[elector.NodeID]findings.Clock {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[elector.NodeID]findings.Clock, len(d.clocks))
	for peer, c := range d.clocks {
		all[peer] = c.clock()
	}
	return all
}

// NotStanding returns why each peer that is linked does not want to lead the default
// election, as it says itself. Those that do are not in it.
func (d *Diagnosis) NotStanding() map[elector.NodeID]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.idle)
}

// OfNode takes note of what is wrong with this node by itself; "" if that is so no more.
func (d *Diagnosis) OfNode(kind findings.Kind, why string) {
	d.finds(kind, "", words.Printable(why, maxDetail))
}

// report adds what a refused connection shows about a peer. It is forgotten a
// minute after it was reported last, and when a link to the peer comes up. Name and detail
// may be a stranger's words: they are made printable and cut to a length for people.
func (d *Diagnosis) report(kind findings.Kind, peer elector.NodeID, detail string) {
	peer = elector.NodeID(words.Printable(string(peer), netmesh.MaxNameLength))
	d.raise(kind, peer, words.Printable(detail, maxDetail), refusedLife)
}

// Claimed takes note of a voter that claims to lead although it cannot have been elected.
// That is forgotten 10 minutes after it was seen last, whatever becomes of the links.
func (d *Diagnosis) Claimed(peer elector.NodeID, detail string) {
	d.raise(findings.FalseClaim, peer, detail, claimLife)
}

// Forget drops what refused connections have shown about a peer.
func (d *Diagnosis) Forget(peer elector.NodeID) { d.forget(peer, refusedLife) }

// forget drops what refused connections have shown about a peer, or what its link has.
func (d *Diagnosis) forget(peer elector.NodeID, life time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.all, func(k key, f *found) bool {
		return k.peer == peer && f.life == life
	})
}

// finds takes note of what a link shows: detail, or "" if that is so no more.
func (d *Diagnosis) finds(kind findings.Kind, peer elector.NodeID, detail string) {
	if detail != "" {
		d.raise(kind, peer, detail, 0)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, key{kind, peer})
}

// raise adds a finding, or renews it, and logs it if it is new.
func (d *Diagnosis) raise(
	kind findings.Kind, peer elector.NodeID, detail string, life time.Duration,
) {
	refused := life == refusedLife
	d.mu.Lock()
	now, at := time.Now(), key{kind, peer}
	d.expire(now)
	f := findings.Finding{Kind: kind, Peer: peer, Detail: detail, Advice: kind.Advice(), Since: now}
	old := d.all[at]
	if old != nil {
		f.Since = old.Since
	} else if refused {
		d.makeRoom()
	}
	if old != nil || len(d.all) < maxFindings {
		d.all[at] = &found{Finding: f, seen: now, life: life}
	}
	if refused || len(d.cfg.Voters) > 0 && !slices.Contains(d.cfg.Voters, peer) {
		at.peer = "" // strangers may choose many names
	}
	d.mu.Unlock()
	if old != nil {
		return
	}
	if _, due := d.logged.Due(at); due {
		d.cfg.Logger.Warn("finding", "peer", peer, "detail", detail, "advice", f.Advice, "reason", kind)
	}
}

// expire is called with mu held, as is makeRoom.
func (d *Diagnosis) expire(now time.Time) {
	maps.DeleteFunc(d.all, func(_ key, f *found) bool {
		return f.life != 0 && now.Sub(f.seen) > f.life
	})
}

// makeRoom drops the refusal that was not seen for longest if there are too many:
// strangers with names of their own choice must not hide anything else.
func (d *Diagnosis) makeRoom() {
	count, oldest := 0, key{}
	for k, f := range d.all {
		if f.life != refusedLife {
			continue
		}
		if count++; count == 1 || f.seen.Before(d.all[oldest].seen) {
			oldest = k
		}
	}
	if count >= maxRefused {
		delete(d.all, oldest)
	}
}
