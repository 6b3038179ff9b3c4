package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// failure is a row of the table of gray failures.
type failure struct {
	name, words string
	needs       need // of the machine
	// moves is how many moves of leadership the failure deserves: 0 or 1. More are needless.
	moves int
	// begin starts the failure, and returns what ends it.
	begin func(*stage) (end func(), err error)
}

// need is what a failure needs of the machine, beyond processes.
type need int

const (
	needsNetwork need = 1 << iota // namespaces and a firewall
	needsDisk                     // a file system in user space
	needsGroup                    // control groups
	needsTLS                      // nothing, but certificates are made
)

const (
	stopped     = time.Second // of each stopPeriod
	stopPeriod  = 5 * time.Second
	slowerBy    = 10
	quota       = 5  // percent of a core
	losing      = 20 // one packet of so many is lost
	certificate = 15 * time.Second
)

var failures = []failure{
	{"none", "nothing fails: what the machine itself does", 0, 0, (*stage).nothing},
	{"disk hangs", "no call to the leader's disk returns", needsDisk, 1, (*stage).hangDisk},
	{"slow disk", "each flush to the leader's disk takes ten times longer", needsDisk, 1,
		(*stage).slowDisk},
	{"5 % of a core", "the leader's process and a busy one have 5 ms of CPU time in 100 ms",
		needsGroup, 1, (*stage).starve},
	{"pauses", "the leader's process stops for 1 s every 5 s", 0, 1, (*stage).pauses},
	{"deadlock", "the leader's application is stuck, its elector is not", 0, 1, (*stage).deadlock},
	{"dependency", "what the leader's application calls answers with errors", 0, 1,
		(*stage).breakDependency},
	{"5 % loss", "one in 20 packets to the leader is lost", needsNetwork, 0, (*stage).lose},
	{"black hole", "a follower sends and gets nothing", needsNetwork, 0, (*stage).blackHole},
	{"deaf follower", "a follower gets nothing from the leader, and all else arrives", needsNetwork,
		0, (*stage).deafFollower},
	{"deaf leader", "the leader gets nothing from the followers, and they get all", needsNetwork, 1,
		(*stage).deafLeader},
	{"memory", "the leader's process has less memory than it uses, and is not killed", needsGroup,
		1, (*stage).thrash},
	{"certificate", "the leader's certificate has expired, and its connections break",
		needsNetwork | needsTLS, 1, (*stage).expire},
	{"host gone", "the leader's host is off, and nobody says goodbye", needsNetwork, 1,
		(*stage).powerOff},
}

// chooseFailures returns the failures of these names, separated by commas; of "", all.
func chooseFailures(names string) (chosen []failure, err error) {
	if names == "" {
		return failures, nil
	}
	known := map[string]failure{}
	var all []string
	for _, f := range failures {
		known[f.name], all = f, append(all, f.name)
	}
	for name := range strings.SplitSeq(names, ",") {
		f, ok := known[strings.TrimSpace(name)]
		if !ok {
			return nil, fmt.Errorf("no failure %q; there are %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, f)
	}
	return chosen, nil
}

func (s *stage) nothing() (func(), error) { return func() {}, nil }

func (s *stage) hangDisk() (func(), error) {
	disk := s.leader().disk
	return disk.goOn, disk.hang()
}

func (s *stage) slowDisk() (func(), error) {
	disk := s.leader().disk
	return func() { _ = disk.take(diskFlush) }, disk.take(slowerBy * diskFlush)
}

func (s *stage) starve() (func(), error) { return s.leader().group.limitCPU(quota) }

// pauses stops the process that leads now, whether it leads later or not.
func (s *stage) pauses() (func(), error) {
	p := s.cluster.processes[s.first]
	over, stop := context.WithCancel(s.ctx)
	var storm sync.WaitGroup
	wait := func(d time.Duration) {
		select {
		case <-over.Done():
		case <-time.After(d):
		}
	}
	storm.Go(func() {
		for over.Err() == nil {
			_ = p.signal(syscall.SIGSTOP)
			wait(stopped)
			_ = p.signal(syscall.SIGCONT)
			wait(stopPeriod - stopped)
		}
	})
	return func() {
		stop()
		storm.Wait()
	}, nil
}

func (s *stage) deadlock() (func(), error) {
	return func() {}, s.cluster.processes[s.first].command(node.Deadlock)
}

func (s *stage) breakDependency() (func(), error) {
	broken := &s.leader().broken
	broken.Store(true)
	return func() { broken.Store(false) }, nil
}

// lose drops packets of the other nodes that arrive at the leader.
func (s *stage) lose() (func(), error) {
	return s.leader().drop(s.followers(), "-m", "statistic", "--mode", "random",
		"--probability", fmt.Sprint(1.0/losing))
}

func (s *stage) blackHole() (func(), error) {
	h := s.followers()[0]
	return func() { _ = h.plug("up") }, h.plug("down")
}

func (s *stage) deafFollower() (func(), error) {
	return s.followers()[0].drop([]*host{s.leader()})
}

func (s *stage) deafLeader() (func(), error) { return s.leader().drop(s.followers()) }

func (s *stage) thrash() (func(), error) {
	return s.leader().group.limitMemory(s.cluster.processes[s.first].cmd.Process.Pid)
}

// expire waits until all nodes use a certificate of the leader that is short-lived, and until it
// has expired. That ends no connection everywhere, so it cuts those that there are.
func (s *stage) expire() (func(), error) {
	h := s.leader()
	if err := s.ca.issue(h, certificate); err != nil {
		return nil, err
	}
	if err := s.cluster.pause(s.ctx, certificate+time.Second); err != nil {
		return nil, err
	}
	for _, other := range s.followers() {
		if err := inside(h.ns, "ss", "-K", "dst", other.ip); err != nil {
			return nil, err
		}
	}
	return func() {}, nil
}

// powerOff unplugs the host first: otherwise the kernel would say goodbye for the process.
func (s *stage) powerOff() (func(), error) {
	err := s.leader().plug("down")
	s.cluster.kill(s.first)
	return func() {}, err
}
