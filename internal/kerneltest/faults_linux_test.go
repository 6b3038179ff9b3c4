package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// long is set for the runs by hand; `make kernel` says how.
var long = os.Getenv("KERNELTEST_LONG") != ""

// seed returns KERNELTEST_SEED, or a new one, and says which.
func seed(t *testing.T) uint64 {
	s, err := strconv.ParseUint(os.Getenv("KERNELTEST_SEED"), 10, 64)
	if err != nil {
		s = rand.Uint64() % 10_000
	}
	t.Logf("KERNELTEST_SEED=%d", s)
	return s
}

// example has the lease of docs/embedding.md. It waits less before an election, so that
// a false proof has its effect while the old lease lasts.
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

// block makes a voter's firewall treat packets from ("in"), to ("out") or both as target
// says. A reset answers TCP alone.
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

// refuseDials makes the leader's firewall refuse new connections, and those alone.
func (r *rig) refuseDials(at *voter, others []*voter) { r.block(at, "in", reset, "--syn", others...) }

// sever resets connections of the mesh between two voters, as the kernel of the first
// would at its own will: the which-th, or all if which is negative.
func (r *rig) sever(at, other *voter, which int) {
	n := 0
	for _, line := range strings.Split(r.run("", at.inside("ss -tnH state established dst "+other.ip)), "\n") {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasSuffix(f[2], fmt.Sprint(":", meshPort)) && !strings.HasSuffix(f[3], fmt.Sprint(":", meshPort)) {
			continue
		}
		if which < 0 || n == which {
			r.run("", at.inside("ss -K src "+f[2]+" dst "+f[3]))
		}
		n++
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

// fault is something that nobody dies of.
type fault struct {
	name  string
	brief bool // it is part of every run of the tests
	do    func(r *rig, leader *voter, others []*voter)
}

func faults() (all []fault) {
	for _, target := range targets {
		for _, way := range []string{"in", "out", "both"} {
			all = append(all, fault{
				"firewall " + way + " " + strings.TrimPrefix(target, "REJECT --reject-with "), target == reset && way == "in",
				func(r *rig, l *voter, o []*voter) { r.block(l, way, target, "", o...) },
			})
		}
	}
	for which, name := range []string{"first", "second"} {
		all = append(all, fault{"reset by leader, dials refused: " + name, true, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			for _, v := range o {
				r.sever(l, v, which)
			}
		}}, fault{"reset by followers, dials refused: " + name, false, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			for _, v := range o {
				r.sever(v, l, which)
			}
		}}, fault{"half-open at leader: " + name, false, func(r *rig, l *voter, o []*voter) {
			halfOpen(r, l, o, which)
		}}, fault{"half-open at followers, dials refused: " + name, true, func(r *rig, l *voter, o []*voter) {
			for _, v := range o {
				halfOpen(r, v, []*voter{l}, which)
			}
			r.refuseDials(l, o)
		}})
	}
	return append(all,
		fault{"dials refused from before the link was", false, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			for _, v := range o {
				r.sever(l, v, -1)
			}
			r.signal(syscall.SIGCONT, o...)
			time.Sleep(time.Second) // the leader dials
			r.block(l, "in", reset, "", o...)
		}},
		fault{"reset by all, dials refused", true, func(r *rig, l *voter, o []*voter) {
			r.refuseDials(l, o)
			for _, v := range o {
				r.sever(l, v, -1)
			}
		}},
		fault{"leader's link down", true, func(r *rig, l *voter, _ []*voter) { r.ip("link set", l.port, "down") }},
		fault{"all links down", false, func(r *rig, _ *voter, _ []*voter) {
			for _, v := range r.voters {
				r.ip("link set", v.port, "down")
			}
		}},
		fault{"leader stopped, its accept queue full", true, func(r *rig, l *voter, o []*voter) {
			r.signal(syscall.SIGSTOP, l)
			r.flood(l)
			for _, v := range o {
				r.sever(v, l, -1)
			}
			time.Sleep(500 * time.Millisecond)
			r.signal(syscall.SIGCONT, l)
		}},
	)
}

// halfOpen takes connections from one end without the other end's knowledge.
func halfOpen(r *rig, at *voter, others []*voter, which int) {
	r.block(at, "both", "DROP", "", others...)
	for _, v := range others {
		r.sever(at, v, which)
	}
	r.run("*filter\nCOMMIT\n", at.inside("iptables-restore -w"))
}

// TestNobodyAliveIsProvenDead takes each fault to a leader, with the followers held up
// or not.
func TestNobodyAliveIsProvenDead(t *testing.T) {
	t.Parallel()
	r := build(t, seed(t), example())
	r.start(r.voters...)
	r.settle(20 * time.Second)
	rounds, _ := strconv.Atoi(os.Getenv("KERNELTEST_ROUNDS"))
	only := os.Getenv("KERNELTEST_FAULT")
	table := newTable("fault", "held")
	all := verdict{}
	for range max(rounds, 1) {
		for _, f := range faults() {
			if !strings.Contains(f.name, only) || !long && !f.brief {
				continue
			}
			for _, held := range []bool{true, false} {
				if !held && !long {
					continue
				}
				v := r.endure(f, held)
				all.add(v)
				table.add(v, f.name, fmt.Sprint(held))
			}
		}
	}
	t.Log(table)
	require.Empty(t, all.wrong())
	require.Positive(t, all.Lost, "no link was lost: the faults do nothing")
}

// endure is one trial.
func (r *rig) endure(f fault, held bool) verdict {
	leader, others := r.settle(30 * time.Second)
	began := now()
	if held {
		r.signal(syscall.SIGSTOP, others...)
	}
	f.do(r, leader, others)
	if held { // long enough for what is to be sent to wait
		time.Sleep(time.Second + time.Duration(r.rng.Int64N(int64(400*time.Millisecond))))
		r.signal(syscall.SIGCONT, others...)
	}
	time.Sleep(time.Duration(began.Sub(now())) + 3*time.Second) // the lease of before
	r.heal()
	r.settle(30 * time.Second)
	return r.judge(began)
}

// table is of the verdicts on each kind of trial.
type table struct {
	head []string
	rows map[string]*row
	keys []string
}

type row struct {
	verdict
	trials, bad int
}

func newTable(head ...string) *table { return &table{head: head, rows: map[string]*row{}} }

func (b *table) add(v verdict, key ...string) {
	k := strings.Join(key, "\t")
	if b.rows[k] == nil {
		b.rows[k] = &row{}
		b.keys = append(b.keys, k)
	}
	x := b.rows[k]
	x.add(v)
	x.trials++
	if len(v.TwoLead) > 0 {
		x.bad++
	}
}

// String has a line for each kind.
func (b *table) String() string {
	var s strings.Builder
	w := tabwriter.NewWriter(&s, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\ttrials\tlinks lost\tproofs\tfalse\ttwo leaders\tlongest\tboth work, longest\n", strings.Join(b.head, "\t"))
	for _, k := range b.keys {
		x := b.rows[k]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", k, x.trials, x.Lost, x.Proofs, len(x.FalseProofs), x.bad,
			longest(x.TwoLead).Round(time.Millisecond), longest(x.TwoWork).Round(time.Millisecond))
	}
	w.Flush()
	return s.String()
}
