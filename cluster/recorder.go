package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

const (
	// recorderRoom is how many records wait for the disk; more are lost.
	recorderRoom = 256
	// recordAfter is how long a record waits, so that an election has the processor first.
	recordAfter = 5 * time.Millisecond
	// heldFrom is how late the driver must be for a record: half a heartbeat of the
	// article's timers.
	heldFrom = 250 * time.Millisecond
	// roomEvery is the time between two looks for room on the disk.
	roomEvery = 10 * time.Second
	// roomFile is written and removed then; roomLeast is its size in bytes.
	roomFile  = "room.tmp"
	roomLeast = 4 << 10
)

// recorder writes what happens to the data directory, beside the driver: the recording, and
// of it what tells the history of leaderships. A disk that fails or hangs costs records,
// which are counted, and nothing else.
type recorder struct {
	all, history *recording.Log
	node         string
	boot         uint64
	dir          string
	found        func(why string) // gets what is wrong with the disk, "" if that is over
	records      chan recording.Record
	lost         atomic.Uint64
	done         chan struct{} // closed when run has returned
}

func (n *Node) newRecorder() *recorder {
	return &recorder{
		all:     recording.New(n.cfg.DataDir, recording.Recording),
		history: recording.New(n.cfg.DataDir, recording.History),
		node:    string(n.cfg.Node), boot: n.store.Boot(), dir: n.cfg.DataDir,
		found:   func(why string) { n.diagnosis.OfNode(findings.DiskFails, why) },
		records: make(chan recording.Record, recorderRoom), done: make(chan struct{}),
	}
}

// run writes until quit, and then what still waits.
func (r *recorder) run(quit <-chan struct{}) {
	defer close(r.done)
	defer func() { _, _ = r.all.Close(), r.history.Close() }() // nothing is left to be written
	look := time.NewTicker(roomEvery)
	defer look.Stop()
	for {
		select {
		case record := <-r.records:
			select {
			case <-time.After(recordAfter):
			case <-quit:
			}
			r.write(&record)
			r.writeWaiting()
		case <-look.C:
			r.lookForRoom()
		case <-quit:
			r.writeWaiting()
			return
		}
	}
}

func (r *recorder) writeWaiting() {
	for len(r.records) > 0 {
		record := <-r.records
		r.write(&record)
	}
}

func (r *recorder) write(record *recording.Record) {
	record.Node, record.Boot = r.node, r.boot
	err := r.all.Append(*record)
	if k := record.Kind; err == nil && (k == recording.Started || k == recording.Transition) {
		err = r.history.Append(*record)
	}
	if err == nil {
		return
	}
	r.lost.Add(1)
	r.found(fmt.Sprintf("it cannot record what happens, which elections do not need: %v", err))
}

// lookForRoom finds out whether the disk takes anything, before something happens that is to be
// recorded; and whether it does so again.
func (r *recorder) lookForRoom() {
	file, why := filepath.Join(r.dir, roomFile), ""
	err := os.WriteFile(file, make([]byte, roomLeast), 0o600)
	if left := os.Remove(file); err == nil {
		err = left
	}
	if err != nil {
		why = fmt.Sprintf("it cannot write to its data directory: %v", err)
	}
	r.found(why)
}

// record lets the recorder write something down. It never waits; any goroutine may call it.
func (n *Node) record(r recording.Record) {
	r.Time, r.Age = time.Now(), n.age().Seconds()
	select {
	case n.recorder.records <- r:
	default:
		n.recorder.lost.Add(1)
	}
}

// recordStep records what an election is told that is no message: heartbeats leave nothing.
func (n *Node) recordStep(g *group, in elector.Input) {
	switch in := in.(type) {
	case elector.Start:
		n.record(recording.Record{Kind: recording.Opened, Group: g.name, Setup: setupOf(g.config)})
	case elector.Transfer:
		n.record(recording.Record{Kind: recording.Transfer, Group: g.name, To: string(in.To)})
	case elector.Resign:
		n.record(recording.Record{Kind: recording.StepDown, Group: g.name, Seconds: in.Rest.Seconds()})
	case elector.Eligible:
		kind := recording.Unfit
		if in.Able {
			kind = recording.Fit
		}
		n.record(recording.Record{Kind: kind, Group: g.name})
	}
}

func (n *Node) recordTransition(group string, t *elector.Transition) {
	n.record(recording.Record{
		Kind: recording.Transition, Group: group, From: t.From.String(), To: t.To.String(),
		Reason: t.Reason.String(), Term: uint64(t.Term), Leader: string(t.Leader),
		Peer: string(t.Peer),
	})
}

// recordLink records what happened to a link, and what a rehearsal had cut then.
func (n *Node) recordLink(r recording.Record) {
	r.Faults = n.faults()
	n.record(r)
}

// held counts and records that the driver is late, as a process is that was stopped, once for
// a tick. It runs on the driver.
func (n *Node) held(late time.Duration) {
	next := n.ticks.next()
	if next == n.heldAt {
		return
	}
	n.heldAt = next
	if len(n.ticks) > 0 && late >= n.ticks[0].g.config.Timing.HeartbeatBroadcast/2 {
		n.measure.stalls.Add(1)
	}
	if late >= heldFrom {
		n.record(recording.Record{
			Kind: recording.Held, Seconds: late.Seconds(), AtMost: (n.age() - n.rested).Seconds(),
		})
	}
}

// setupOf is how a node elects, in the words of a scenario.
func setupOf(c elector.Config) *recording.Setup {
	t := c.Timing
	s := &recording.Setup{
		NotCandidate: c.NotCandidate, Priority: c.Priority,
		Scouting: !c.UnsafeNoScouting, Rule: c.Rule.String(),
		Elector: map[string]string{
			"initial_wait":    t.InitialWait.String(),
			"min_random_wait": t.MinRandomWait.String(), "max_random_wait": t.MaxRandomWait.String(),
			"scouting_result": t.ScoutingResult.String(), "election_result": t.ElectionResult.String(),
			"heartbeat_broadcast":  t.HeartbeatBroadcast.String(),
			"heartbeat_miss_count": strconv.Itoa(t.HeartbeatMissCount),
			"lease":                t.Lease.String(),
			"clock_drift":          strconv.FormatFloat(float64(t.ClockDriftPPM)/1e6, 'f', -1, 64),
		},
	}
	for _, v := range slices.Sorted(slices.Values(c.Voters)) {
		s.Voters = append(s.Voters, string(v))
	}
	if c.QuorumSize() != elector.Majority(len(c.Voters)) {
		s.Elector["quorum"] = strconv.Itoa(c.Quorum)
	}
	if c.UnsafeQuorum {
		s.Elector["unsafe_quorum"] = "true"
	}
	if c.QoS != (detector.QoS{}) {
		s.Elector["qos"] = "{" + c.QoS.String() + "}"
	}
	if c.Phi != (detector.PhiConfig{}) {
		s.Elector["phi"] = "{" + c.Phi.String() + "}"
	}
	if c.Takeover != 0 {
		s.Elector["takeover"] = c.Takeover.String()
	}
	return s
}

// faults are the failures that were made on purpose, in words; "" if there are none.
func (n *Node) faults() string {
	if n.cfg.Faults == nil {
		return ""
	}
	return strings.TrimPrefix(n.cfg.Faults.String(), "none")
}
