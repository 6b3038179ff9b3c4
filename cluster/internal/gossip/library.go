package gossip

import (
	"log"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
)

const (
	defaultStreamTimeout = 3 * time.Second // to open a stream, and for each exchange on it

	// maxAnswerTime bounds a ping, and with it how long Close waits for one.
	maxAnswerTime = 500 * time.Millisecond
	// suspicionMult and suspicionMax set how long a member that misses a probe may
	// object: three probe periods if enough others agree, at most three times that.
	suspicionMult = 3
	suspicionMax  = 3
	// reclaimTime is how long a name stays with the address of a dead member. It is
	// short because a restarted node must be found at once; zero would mean never.
	reclaimTime = time.Millisecond
)

// libraryConfig translates for memberlist, from its settings for a LAN.
func libraryConfig(g *Gossip, tr *transport, bound netip.AddrPort) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = string(g.cfg.Node)
	c.Label = g.cfg.Cluster
	c.Transport = tr
	c.BindAddr, c.BindPort = bound.Addr().String(), int(bound.Port())
	c.AdvertiseAddr, c.AdvertisePort = g.addr.Addr().String(), int(g.addr.Port())
	c.Logger = libraryLogger(g.log)

	t := g.cfg.Timing
	c.ProbeInterval, c.ProbeTimeout = t.Probe, min(t.Probe/2, maxAnswerTime)
	c.GossipInterval = t.Gossip
	c.PushPullInterval = t.Sync
	c.TCPTimeout = g.cfg.streamTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicionMult, suspicionMax
	c.DeadNodeReclaimTime = reclaimTime

	c.Delegate, c.Events, c.Conflict, c.Alive = g.listener, g.listener, g.listener, g.listener
	return c
}

// libraryLogger sends memberlist's chatter to DEBUG: what matters of it reaches
// people as events of members and as join failures. Two lines point at a network
// or a configuration that a person must mend, and are said once as warnings.
func libraryLogger(to hclog.Logger) *log.Logger {
	return log.New(&libraryLines{to: to, seen: map[string]sighting{}}, "", 0)
}

const (
	lateProbe = "over TCP but UDP probes failed"
	// lateProbes is how many, each within a minute of the one before, are no longer a
	// sign of a busy machine.
	lateProbes = 5
)

// misconfigurations are the parts of memberlist's lines that are worth a warning.
var misconfigurations = map[string]string{
	lateProbe:                 "a member is reached over TCP but not over UDP: a firewall drops UDP, or its advertised address is wrong",
	"with unacceptable label": "gossip of another cluster arrives here: a join address points into a foreign cluster, in one direction or the other",
}

type libraryLines struct {
	to   hclog.Logger
	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is how often a line came of late.
type sighting struct {
	times  int
	last   time.Time
	warned bool
}

// Write takes one line.
func (l *libraryLines) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	for part, meaning := range misconfigurations {
		if strings.Contains(text, part) && l.due(part) {
			l.to.Warn(meaning, "detail", text)
		}
	}
	l.to.Debug("memberlist", "line", text)
	return len(line), nil
}

// due reports whether a line has come often enough now to be a warning, once.
func (l *libraryLines) due(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, now := l.seen[part], time.Now()
	if now.Sub(s.last) > time.Minute {
		s.times = 0
	}
	s.times, s.last = s.times+1, now
	due := !s.warned && (part != lateProbe || s.times >= lateProbes)
	s.warned = s.warned || due
	l.seen[part] = s
	return due
}
