package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// rounds is how often `make kernel` repeats each trial; 0 means a brief selection, once.
var rounds, _ = strconv.Atoi(os.Getenv("KERNELTEST_ROUNDS"))

// seed returns KERNELTEST_SEED or a new seed, and logs it.
func seed(t *testing.T) uint64 {
	s, err := strconv.ParseUint(os.Getenv("KERNELTEST_SEED"), 10, 64)
	if err != nil {
		s = rand.Uint64N(10_000)
	}
	t.Logf("KERNELTEST_SEED=%d", s)
	return s
}

// example has the lease of docs/embedding.md. It waits less before an election, so that a false
// proof leads to a second leader while the old lease lasts.
func example() elector.Timing {
	t := elector.Article()
	t.HeartbeatMissCount, t.Lease, t.InitialWait = 6, 3*time.Second, 3100*time.Millisecond
	t.MaxRandomWait = 300 * time.Millisecond
	t.ScoutingResult, t.ElectionResult = 500*time.Millisecond, 500*time.Millisecond
	return t
}

const reset = "REJECT --reject-with tcp-reset"

var targets = []string{
	"DROP", reset, "REJECT --reject-with icmp-port-unreachable",
	"REJECT --reject-with icmp-host-unreachable", "REJECT --reject-with icmp-host-prohibited",
}

// block lets a voter's firewall apply target to packets from others ("in"), to them ("out") or
// both. A reset applies to TCP only.
func (r *rig) block(at *voter, direction, target, match string, others ...*voter) {
	if strings.Contains(target, "tcp") || match != "" {
		match = "-p tcp " + match
	}
	var rules []string
	for _, o := range others {
		if direction != "out" {
			rules = append(rules, fmt.Sprintf("-A INPUT -s %s %s -j %s", o.ip, match, target))
		}
		if direction != "in" {
			rules = append(rules, fmt.Sprintf("-A OUTPUT -d %s %s -j %s", o.ip, match, target))
		}
	}
	r.rules(at, rules...)
}

// refuseDials lets a voter's firewall refuse new connections only.
func (r *rig) refuseDials(at *voter, others []*voter) {
	r.block(at, "in", reset, "--syn", others...)
}

// Which connections of a pair are meant: the one with the least traffic, the most, or all.
type which string

const (
	idle which = "idle connection"
	busy which = "busy connection"
	each which = "all connections"
)

var received = regexp.MustCompile(`bytes_received:(\d+)`)

// sever lets the kernel reset mesh connections of one voter to another.
func (r *rig) sever(at, other *voter, chosen which) {
	type socket struct {
		ends string
		got  int
	}
	var all []socket
	sockets := r.run("", at.inside("ss -tniHO state established dst "+other.ip))
	for line := range strings.Lines(sockets) {
		f, mesh := strings.Fields(line), fmt.Sprint(":", meshPort)
		if strings.HasSuffix(f[2], mesh) || strings.HasSuffix(f[3], mesh) {
			s := socket{ends: "src " + f[2] + " dst " + f[3]}
			if m := received.FindStringSubmatch(line); m != nil {
				s.got, _ = strconv.Atoi(m[1])
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b socket) int { return a.got - b.got })
	switch {
	case len(all) > 0 && chosen == idle:
		all = all[:1]
	case len(all) > 0 && chosen == busy:
		all = all[len(all)-1:]
	}
	for _, s := range all {
		r.run("", at.inside("ss -K "+s.ends))
	}
}

// flood fills the queue of connections that wait to be accepted.
func (r *rig) flood(v *voter) {
	for range 400 {
		go func() {
			conn, err := net.DialTimeout("tcp", v.cfg.Config.MeshAddr, 3*time.Second)
			if err == nil {
				time.Sleep(3 * time.Second)
				conn.Close()
			}
		}()
	}
}

// fault is one of which no node dies.
type fault struct {
	name  string
	brief bool // it is part of every run of the tests
	do    func(r *rig, leader *voter, others []*voter)
}

func faults() (all []fault) {
	for _, target := range targets {
		for _, way := range []string{"in", "out", "both"} {
			name := "firewall " + way + " " + strings.TrimPrefix(target, "REJECT --reject-with ")
			all = append(all, fault{
				name, target == reset && way == "in",
				func(r *rig, l *voter, o []*voter) { r.block(l, way, target, "", o...) },
			})
		}
	}
	for _, which := range []which{idle, busy, each} {
		add := func(name string, brief bool, do func(r *rig, l *voter, o []*voter)) {
			all = append(all, fault{name + string(which), brief, do})
		}
		add("leader resets ", true, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			for _, v := range o {
				r.sever(l, v, which)
			}
		})
		add("followers reset ", false, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			for _, v := range o {
				r.sever(v, l, which)
			}
		})
		add("leader lacks ", false, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			r.halfOpen(l, o, which)
		})
		add("followers lack ", false, func(r *rig, l *voter, o []*voter) {
			for _, v := range o {
				r.halfOpen(v, []*voter{l}, which)
			}
			r.refuseDials(l, o)
		})
	}
	return append(all,
		fault{"dials refused from before the link was", false, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			for _, v := range o {
				r.sever(l, v, each)
			}
			r.signal(syscall.SIGCONT, o...)
			time.Sleep(time.Second) // the leader dials
			r.block(l, "in", reset, "", o...)
		}},
		fault{"leader's link down", true, func(r *rig, l *voter, _ []*voter) {
			r.ip("link set", l.port, "down")
		}},
		fault{"all links down", false, func(r *rig, _ *voter, _ []*voter) {
			for _, v := range r.voters {
				r.ip("link set", v.port, "down")
			}
		}},
		fault{"leader stopped, its accept queue full", true, func(r *rig, l *voter, o []*voter) {
			r.signal(syscall.SIGSTOP, l)
			r.flood(l)
			for _, v := range o {
				r.sever(v, l, each)
			}
			time.Sleep(500 * time.Millisecond)
			r.signal(syscall.SIGCONT, l)
		}},
	)
}

// halfOpen ends connections at one end, without a packet to the other.
func (r *rig) halfOpen(at *voter, others []*voter, chosen which) {
	r.block(at, "both", "DROP", "", others...)
	for _, v := range others {
		r.sever(at, v, chosen)
	}
	r.clear(at)
}

// TestNobodyAliveIsProvenDead exposes a leader to each fault, with the followers stopped or
// not.
func TestNobodyAliveIsProvenDead(t *testing.T) {
	t.Parallel()
	r := build(t, seed(t), example())
	r.start(r.voters...)
	table := &table{head: "fault\tfollowers"}
	for _, f := range faults() {
		if rounds > 0 || f.brief {
			r.endureBoth(table, f, r.heal)
		}
	}
	t.Log(table)
}

// endureBoth makes the trials of a fault, with the followers stopped and running.
func (r *rig) endureBoth(b *table, f fault, repair func()) {
	whole := r.t
	defer func() { r.t = whole }()
	for _, how := range []string{"held up", "awake"} {
		if how == "awake" && f.brief && rounds == 0 {
			continue
		}
		whole.Run(f.name+"/"+how, func(t *testing.T) {
			r.t = t
			all := verdict{}
			for range max(rounds, 1) {
				v := r.endure(f, how == "held up", repair)
				b.add(v, f.name+"\t"+how)
				all.add(v)
			}
			require.Empty(t, all.wrong())
		})
	}
}

// endure is one trial.
func (r *rig) endure(f fault, held bool, repair func()) verdict {
	leader, others := r.settle(30 * time.Second)
	began := now()
	if held {
		r.signal(syscall.SIGSTOP, others...)
	}
	f.do(r, leader, others)
	if held {
		least, spread := time.Second, 400*time.Millisecond // they have something to send by then
		if rounds > 0 {
			least, spread = 350*time.Millisecond, 1700*time.Millisecond
		}
		time.Sleep(least + time.Duration(r.rng.Int64N(int64(spread))))
		r.signal(syscall.SIGCONT, others...)
	}
	time.Sleep(time.Duration(began.Sub(now())) + 3*time.Second) // the lease of before
	repair()
	r.settle(30 * time.Second)
	return r.judge(began)
}

// TestAProxyThatDiesProvesNothing has a proxy before each voter. All of them are killed:
// connections end in order, and dials are refused.
func TestAProxyThatDiesProvesNothing(t *testing.T) {
	t.Parallel()
	r := build(t, seed(t), example())
	self, err := os.Executable()
	require.NoError(t, err)
	var proxies []*exec.Cmd
	stop := func() {
		for _, p := range proxies {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		proxies = nil
	}
	start := func() {
		for i, v := range r.voters {
			at, to := fmt.Sprintf("%s:%d", r.address(254), meshPort+i), v.cfg.Config.MeshAddr
			v.cfg.Config.AdvertiseMesh = at
			p := exec.Command(self)
			p.Env = append(os.Environ(), envProxy+"="+to, envProxyAt+"="+at)
			require.NoError(t, p.Start())
			proxies = append(proxies, p)
		}
	}
	t.Cleanup(stop)
	start()
	r.start(r.voters...)
	table := &table{head: "fault\tfollowers"}
	killed := fault{name: "proxies killed", do: func(*rig, *voter, []*voter) { stop() }}
	r.endureBoth(table, killed, start)
	t.Log(table)
}
