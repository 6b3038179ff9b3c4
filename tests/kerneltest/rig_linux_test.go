package kerneltest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

const (
	gossipPort = 7400
	meshPort   = 7401
	quorate    = 5 // voters of a rig
)

// rigs counts the rigs of this process: each has a bridge and names of its own.
var rigs atomic.Int32

// rig is a cluster of voters on one bridge.
type rig struct {
	t       *testing.T
	rng     *rand.Rand
	number  int32
	voters  []*voter
	mu      sync.Mutex // guards what the voters tell
	records []record
	lives   map[string][]life // of the nodes, in order
	now     map[string]record // the newest state
	doubt   map[string][]life // when a node may end by itself
	started int               // processes
	ended   int               // processes, by themselves
}

// life is the time of a node from its start to its end.
type life struct{ From, To elector.Time }

// voter is a network namespace with a process, or without one.
type voter struct {
	name, ip, ns, port string
	cfg                voterConfig
	env                string    // a variable of the process
	cmd                *exec.Cmd // nil if none runs
	orders             io.WriteCloser
	heard              chan struct{} // closed when all output of the process was read
	disk               *disk         // nil: a directory in memory
}

// build makes the network and the voters' configurations. It starts nothing.
func build(t *testing.T, seed uint64, timing elector.Timing) *rig {
	t.Helper()
	return buildOf(t, quorate, seed, timing)
}

func buildOf(t *testing.T, size int, seed uint64, timing elector.Timing) *rig {
	t.Helper()
	if missing != "" {
		t.Skip(missing)
	}
	r := &rig{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), number: rigs.Add(1),
		lives: map[string][]life{}, now: map[string]record{}, doubt: map[string][]life{},
	}
	// All files are in memory: a slow disk would be another fault.
	dir, bridge := fmt.Sprintf("/run/rig%d", r.number), fmt.Sprintf("bridge%d", r.number)
	require.NoError(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { r.keepLogs(dir) })
	r.ip("link add", bridge, "type bridge")
	r.ip("addr add", r.address(254)+"/24", "dev", bridge)
	r.ip("link set", bridge, "up")
	t.Cleanup(func() { r.ip("link del", bridge) })
	names := []cluster.NodeID{"a", "b", "c", "d", "e"}[:size]
	for i := range size {
		name := string(names[i])
		v := &voter{
			// With one processor Go runs expired timers before goroutines with input: a process that
			// was stopped writes before it reads.
			env:  "GOMAXPROCS=1",
			name: name, ip: r.address(i + 1),
			ns: fmt.Sprintf("%s%d", name, r.number), port: fmt.Sprintf("port-%s%d", name, r.number),
		}
		v.cfg.Log = filepath.Join(dir, name+".log")
		v.cfg.Config = cluster.Config{
			Node: cluster.NodeID(name), Voters: names,
			DataDir: filepath.Join(dir, name), Election: cluster.ElectionConfig{Timing: timing},
			GossipAddr: fmt.Sprintf("%s:%d", v.ip, gossipPort),
			MeshAddr:   fmt.Sprintf("%s:%d", v.ip, meshPort),
			Insecure:   true, // only voters are in this network
		}
		for j := range size {
			if at := fmt.Sprintf("%s:%d", r.address(j+1), gossipPort); j != i {
				v.cfg.Config.Join = append(v.cfg.Config.Join, at)
			}
		}
		r.voters = append(r.voters, v)
		r.connect(v, bridge)
	}
	if os.Getenv("KERNELTEST_TLS") != "" {
		r.encrypt()
	}
	return r
}

// encrypt gives all voters TLS.
func (r *rig) encrypt() {
	for _, v := range r.voters {
		made, err := certs.Issue(fmt.Sprintf("/run/rig%d/pki", r.number), cluster.DefaultCluster,
			[]string{v.name}, time.Hour)
		require.NoError(r.t, err)
		v.cfg.TLSDir = made[0].Dir
	}
}

// keepLogs copies the logs out of the sandbox, if the test has failed.
func (r *rig) keepLogs(dir string) {
	if !r.t.Failed() {
		return
	}
	out, err := os.MkdirTemp("", "kerneltest-")
	require.NoError(r.t, err)
	r.run("", "cp -r", dir, out)
	r.t.Log("the voters' logs are in", out)
}

func (r *rig) address(host int) string { return fmt.Sprintf("10.9.%d.%d", r.number, host) }

func (r *rig) connect(v *voter, bridge string) {
	r.ip("netns add", v.ns)
	r.ip("link add name", v.port, "type veth peer name eth0 netns", v.ns)
	r.ip("link set", v.port, "master", bridge, "up")
	r.ip("-n", v.ns, "addr add", v.ip+"/24 dev eth0")
	r.ip("-n", v.ns, "link set eth0 up")
	r.ip("-n", v.ns, "link set lo up")
	r.t.Cleanup(func() {
		r.kill(v)
		r.ip("netns del", v.ns)
	})
}

func (r *rig) ip(args ...string) { r.run("", append([]string{"ip"}, args...)...) }

// run runs a command with stdin and returns its output. A string may hold several arguments,
// separated by spaces.
func (r *rig) run(stdin string, args ...string) string {
	r.t.Helper()
	args = strings.Fields(strings.Join(args, " "))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s: %s", strings.Join(args, " "), out)
	return string(out)
}

// inside returns the command line that runs a command in a voter's namespace.
func (v *voter) inside(command string) string {
	return "nsenter --net=/run/netns/" + v.ns + " " + command
}

// await waits until done returns true. It calls done with mu held.
func (r *rig) await(limit time.Duration, what string, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		r.mu.Lock()
		ok := done()
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			require.Fail(r.t, "this did not happen: "+what, "after %s at %.3f: %+v",
				limit, float64(now())/1e9, r.now)
		}
	}
}

// settle waits until all voters follow one leader, with all links up, and returns the
// leader and the others.
func (r *rig) settle(limit time.Duration) (leader *voter, others []*voter) {
	r.t.Helper()
	r.await(limit, "one leader and all links", func() bool {
		leader, others = nil, nil
		for _, v := range r.voters {
			at := r.now[v.name]
			if at.Links != len(r.voters)-1 || at.Leader == "" || at.Leader != r.now["a"].Leader {
				return false
			}
			if at.Leader == v.name {
				leader = v
			} else {
				others = append(others, v)
			}
		}
		return leader != nil
	})
	return leader, others
}

// rules adds firewall rules to a voter's namespace.
func (r *rig) rules(v *voter, rules ...string) {
	text := "*filter\n" + strings.Join(rules, "\n") + "\nCOMMIT\n"
	r.run(text, v.inside("iptables-restore -w -n"))
}

// clear removes all firewall rules of a voter.
func (r *rig) clear(v *voter) { r.run("*filter\nCOMMIT\n", v.inside("iptables-restore -w")) }

// heal removes all faults of the network, and lets all processes go on.
func (r *rig) heal() {
	for _, v := range r.voters {
		r.clear(v)
		r.ip("link set", v.port, "up")
	}
	r.signal(syscall.SIGCONT, r.voters...)
}
