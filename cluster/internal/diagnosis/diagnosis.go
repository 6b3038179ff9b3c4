// Package diagnosis turns what a mesh observes of its peers into findings: problems that a
// person must fix. It changes no link and no election.
package diagnosis

import (
	"cmp"
	"maps"
	"slices"
	"strings"
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
	maxFindings = 1024             // kept at a time
	maxRefused  = 64               // of them, findings that anybody who connects can cause
	refusedLife = time.Minute      // a refusal expires so long after it was seen last
	claimLife   = 10 * time.Minute // and so does a false claim
	maxDetail   = 1 << 10          // bytes of a detail with the words of others
)

// Config describes this node, and what its peers are compared with.
type Config struct {
	Node     elector.NodeID
	Voters   []elector.NodeID  // compared with those of each peer; none: not compared
	Lost     []elector.NodeID  // declared lost on this node: not compared
	Settings map[string]string // must be equal on every node; at most 14
	// MaxDriftPPM is by how many parts per million the rates of two nodes' clocks
	// may differ. 0 means any: they are only measured.
	MaxDriftPPM int64
	Logger      hclog.Logger
}

// Diagnosis holds the current findings. It is safe for concurrent use.
type Diagnosis struct {
	cfg Config

	mu     sync.Mutex // taken last: nothing else is called while it is held
	all    map[key]*found
	logged limit.Log[key]
	clocks map[elector.NodeID]*clockRate // of the linked peers
	idle   map[elector.NodeID]string     // why a linked peer does not stand for election
}

type key struct {
	kind findings.Kind
	peer elector.NodeID
}

type found struct {
	findings.Finding

	seen time.Time
	life time.Duration // it expires so long after seen; 0: when the link ends
}

// New returns a Diagnosis that has found nothing.
func New(cfg Config) *Diagnosis {
	return &Diagnosis{
		cfg: cfg, all: map[key]*found{},
		clocks: map[elector.NodeID]*clockRate{}, idle: map[elector.NodeID]string{},
	}
}

// Findings returns the current findings of this member, sorted by peer and kind, at most
// 1024.
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

// Clocks returns the rates of the linked peers' clocks relative to this node's.
func (d *Diagnosis) Clocks() map[elector.NodeID]findings.Clock {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[elector.NodeID]findings.Clock, len(d.clocks))
	for peer, c := range d.clocks {
		all[peer] = c.clock()
	}
	return all
}

// NotStanding returns the linked peers that do not want to lead the default election, each
// with its own reason.
func (d *Diagnosis) NotStanding() map[elector.NodeID]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.idle)
}

// OfNode sets a finding about this node itself. An empty why ends it.
func (d *Diagnosis) OfNode(kind findings.Kind, why string) {
	d.finds(kind, "", words.Printable(why, maxDetail))
}

// OfVoters sets the findings of voters that count for nothing: why, by the peer; "" for this node.
func (d *Diagnosis) OfVoters(why map[elector.NodeID]string) {
	for _, f := range d.Findings() {
		if f.Kind == findings.VoterUncounted && why[f.Peer] == "" {
			d.finds(f.Kind, f.Peer, "")
		}
	}
	for peer, detail := range why {
		d.finds(findings.VoterUncounted, peer, detail)
	}
}

// report adds a finding about a peer whose connection was refused. It expires a minute after
// it was reported last, and ends when a link to the peer comes up. A stranger may have chosen
// the name and the detail: they are made printable and shortened.
func (d *Diagnosis) report(kind findings.Kind, peer elector.NodeID, detail string) {
	peer = elector.NodeID(words.Printable(string(peer), netmesh.MaxNameLength))
	d.raise(kind, peer, words.Printable(detail, maxDetail), refusedLife)
}

// Claimed adds a finding about what a peer claims and cannot be. It expires 10 minutes after it was
// seen last, whether or not the peer is linked.
func (d *Diagnosis) Claimed(kind findings.Kind, peer elector.NodeID, detail string) {
	d.raise(kind, peer, detail, claimLife)
}

// VotersDiffer says which linked peer is configured with other voters; "" if none is.
func (d *Diagnosis) VotersDiffer() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, f := range d.all {
		if at.kind == findings.VotersDiffer {
			return f.Detail
		}
	}
	return ""
}

// Forget ends the findings that refused connections of a peer have caused.
func (d *Diagnosis) Forget(peer elector.NodeID) { d.forget(peer, refusedLife) }

// forget ends the findings about a peer with that life: those that refused connections have
// caused, or those that its link has.
func (d *Diagnosis) forget(peer elector.NodeID, life time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.all, func(k key, f *found) bool {
		return k.peer == peer && f.life == life
	})
}

// finds sets a finding that a link has caused. An empty detail ends it.
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
	f := findings.Finding{Kind: kind, Peer: peer, Detail: detail, Since: now,
		Advice: strings.ReplaceAll(kind.Advice(), "NODE", string(cmp.Or(peer, d.cfg.Node)))}
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
		at.peer = "" // strangers may use many names, and must not fill the log
	}
	d.mu.Unlock()
	if old != nil {
		return
	}
	if _, due := d.logged.Due(at); due {
		d.cfg.Logger.Warn("finding", "peer", peer, "detail", detail, "advice", f.Advice, "reason", kind)
	}
}

// expire ends findings that were not seen again within their lifetime. The caller of expire and
// of makeRoom holds mu.
func (d *Diagnosis) expire(now time.Time) {
	maps.DeleteFunc(d.all, func(_ key, f *found) bool {
		return f.life != 0 && now.Sub(f.seen) > f.life
	})
}

// makeRoom drops the refusal that was seen least recently if there are too many: strangers
// who use many names must not displace other findings.
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
