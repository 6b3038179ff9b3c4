// Command many measures nodes that take part in many elections, each node a process, over loopback.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

var (
	counts  = flag.String("elections", "1,1000,10000,100000", "how many elections, one run for each")
	profile = flag.String("profile", "article", "the timers")
	idle    = flag.Duration("idle", 10*time.Second, "how long to measure at rest")
	port    = flag.Int("port", 17400, "the first of nine ports on 127.0.0.1")
	child   = flag.String("node", "", "run as this node (internal)")
	count   = flag.Int("count", 1, "how many elections this node opens (internal)")
	dir     = flag.String("dir", "", "data of this node (internal)")
)

var names = []cluster.NodeID{"a", "b", "c"}

// figures are what a node says about itself.
type figures struct {
	Led, Leaderless int
	Memory          int // resident, in KiB
	Bytes           uint64
	Opened          time.Duration // opening all elections took
}

func main() {
	flag.Parse()
	if *child != "" {
		if err := runNode(); err != nil {
			log.Fatal(err)
		}
		return
	}
	fmt.Println("|elections|led after|led by a, b, c|CPU|KiB/s|wake-ups/s|memory|opening one|" +
		"a killed: led after|CPU then|\n|---|---|---|---|---|---|---|---|---|---|")
	for _, text := range strings.Split(*counts, ",") {
		n, err := strconv.Atoi(text)
		if err == nil {
			err = measure(n)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// addr is an address of a node: kind 0 for gossip, 1 for the mesh.
func addr(id cluster.NodeID, kind int) string {
	return fmt.Sprintf("127.0.0.1:%d", *port+int(id[0]-'a')*2+kind)
}

// runNode runs a node, and writes its figures for each line that it reads.
func runNode() error {
	id := cluster.NodeID(*child)
	timing, known := elector.Profile(*profile)
	if !known {
		return fmt.Errorf("profile %q is unknown; there are %s", *profile,
			strings.Join(elector.ProfileNames(), ", "))
	}
	election := cluster.ElectionConfig{Timing: timing}
	n, err := cluster.Start(context.Background(), cluster.Config{
		Node: id, Voters: names, DataDir: *dir, GossipAddr: addr(id, 0), MeshAddr: addr(id, 1),
		Join: []string{addr("a", 0), addr("b", 0), addr("c", 0)}, Election: election, Insecure: true,
	})
	if err != nil {
		return err
	}
	began := time.Now()
	for i := 1; i < *count; i++ {
		if _, err := n.Election(fmt.Sprintf("e%06d", i), election); err != nil {
			return err
		}
	}
	opened := time.Since(began)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f := look(n)
		f.Opened = opened
		if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
			return err
		}
	}
	return in.Err()
}

func look(n *cluster.Node) (f figures) {
	sums := n.StatsOf(cluster.Selection{Few: 1}).Sums
	f.Led, f.Leaderless = sums.Leading, sums.WithoutLeader
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			f.Memory, _ = strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")))
		}
	}
	for _, l := range n.Stats().Links {
		f.Bytes += l.BytesOut
	}
	return f
}

// process is a node as its parent sees it.
type process struct {
	cmd *exec.Cmd
	ask *json.Decoder
	say *bufio.Writer
}

func (p *process) figures() (f figures, err error) {
	if _, err = p.say.WriteString("\n"); err == nil {
		err = p.say.Flush()
	}
	if err == nil {
		err = p.ask.Decode(&f)
	}
	return f, err
}

func start(id cluster.NodeID, n int, root string) (*process, error) {
	cmd := exec.Command(os.Args[0], "-node", string(id), "-count", strconv.Itoa(n),
		"-profile", *profile, "-port", strconv.Itoa(*port), "-dir", filepath.Join(root, string(id)))
	cmd.Stderr = nil
	if os.Getenv("MANY_LOG") != "" {
		cmd.Stderr = os.Stderr
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, json.NewDecoder(out), bufio.NewWriter(in)}, cmd.Start()
}

// allLed waits until all elections have one leader, and returns the newest figures.
func allLed(all []*process, n int) (latest []figures, err error) {
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
		led, leaderless := 0, 0
		latest = nil
		for _, p := range all {
			f, err := p.figures()
			if err != nil {
				return nil, err
			}
			latest = append(latest, f)
			led, leaderless = led+f.Led, leaderless+f.Leaderless
		}
		if led == n && leaderless == 0 {
			return latest, nil
		}
	}
	return nil, fmt.Errorf("not all %d elections have a leader: %+v", n, latest)
}

// rest measures the mean of the nodes over a while. To look at a node costs time, so the kernel
// says what it takes.
func rest(all []*process, before []figures) (cpu, bytes, wakes float64, last []figures, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0, 0, nil, err
	}
	usage := func(p *process) (cpu, wakes float64) {
		proc, err := fs.Proc(p.cmd.Process.Pid)
		if err != nil {
			return 0, 0
		}
		stat, _ := proc.Stat()
		threads, _ := fs.AllThreads(proc.PID)
		for _, t := range threads {
			status, _ := t.NewStatus()
			wakes += float64(status.VoluntaryCtxtSwitches)
		}
		return stat.CPUTime(), wakes
	}
	each := idle.Seconds() * float64(len(all))
	for _, p := range all {
		c, w := usage(p)
		cpu, wakes = cpu-c/each, wakes-w/each
	}
	time.Sleep(*idle)
	for _, p := range all {
		c, w := usage(p)
		cpu, wakes = cpu+c/each, wakes+w/each
	}
	for i, p := range all {
		f, err := p.figures()
		if err != nil {
			return 0, 0, 0, nil, err
		}
		last = append(last, f)
		bytes += float64(f.Bytes-before[i].Bytes) / each
	}
	return cpu, bytes, wakes, last, nil
}

func measure(n int) error {
	root, err := os.MkdirTemp("", "many")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	var all []*process
	began := time.Now()
	for _, id := range names {
		p, err := start(id, n, root)
		if err != nil {
			return err
		}
		defer func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() }()
		all = append(all, p)
	}
	if _, err := allLed(all, n); err != nil {
		return err
	}
	ledAfter := time.Since(began)
	time.Sleep(5 * time.Second)
	before, err := allLed(all, n)
	if err != nil {
		return err
	}
	cpu, bytes, wakes, last, err := rest(all, before)
	if err != nil {
		return err
	}
	led := []int{last[0].Led, last[1].Led, last[2].Led}
	_ = all[0].cmd.Process.Kill()
	killed := time.Now()
	if _, err := allLed(all[1:], n); err != nil {
		return err
	}
	again := time.Since(killed)
	time.Sleep(5 * time.Second)
	if before, err = allLed(all[1:], n); err != nil {
		return err
	}
	cpuOfTwo, _, _, _, err := rest(all[1:], before)
	each := last[0].Opened / time.Duration(max(n-1, 1))
	fmt.Printf("|%d|%.1f s|%v|%.2f %%|%.1f|%.0f|%d MiB|%s|%.2f s|%.2f %%|\n", n, ledAfter.Seconds(), led,
		100*cpu, bytes/1024, wakes, last[0].Memory/1024, each.Round(time.Microsecond),
		again.Seconds(), 100*cpuOfTwo)
	return err
}
