// Package incident makes a scenario of what the nodes of a cluster recorded, so that the
// simulator shows the incident again. It is pure: records go in, a text comes out.
//
// Nobody records that a cable was cut: that follows from what both ends of a link saw. The
// files, in the order of the work:
//
//   - clocks.go compares the nodes' wall clocks by what two of them saw
//   - lives.go finds when each process ran, and when it was paused
//   - links.go finds which links were lost although both ends ran, and in which direction
//   - window.go chooses the part of the time that is the incident, and its steps
//   - scenario.go writes the scenario
//   - replay.go looks for a seed under which the simulator shows the same leaders for the same
//     reasons
//   - recorded.go makes a run of what the nodes recorded, for the page
//   - text.go writes the report for people
//
// Package record collects the records and writes the files.
package incident

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// Source is what one node recorded.
type Source struct {
	Node    string
	Records []recording.Record // in the order of the log
	Damaged int                // records that could not be read
	Alive   bool               // the node answered: its last process runs
	bySight bool               // the node's recording is missing: others saw this
}

// Options say which incident is meant.
type Options struct {
	Group    string    // the election
	From, To time.Time // on the clock of the first source; the report has the time zone of To
}

// Incident is what follows from the recordings. Its times are on the clock of the first
// source.
type Incident struct {
	Start, End time.Time                // of the scenario
	Clocks     map[string]time.Duration // how much a node's clock is ahead, where that counts
	Led        []recording.Leadership   // from Start to End, as the nodes saw it
	Steps      []Step                   // from Start to End, in the order of time
	Doubts     []string                 // what does not follow from the recordings
	Names      map[string]string        // of nodes in the scenario, where they differ
	Text       []byte                   // the scenario

	Options
	sources []Source                    // the times are by the clock of the first
	records []recording.Record          // of all nodes, in the order of time
	setup   recording.Setup             // of the election
	setups  map[string]*recording.Setup // of the nodes
	nodes   []string                    // all, voters first
	period  time.Duration               // of the heartbeats
	silence time.Duration               // after which an end of a link gives it up
	lives   map[string][]life
	all     []Step          // those outside the window, too
	absent  map[string]bool // nodes that do not run at the start
}

// Step is a step of the scenario.
type Step struct {
	At    time.Time
	Do    string // the word of the format
	Nodes []string
	Pairs []scenario.Pair // directions, for cut and heal
	Reset bool            // of a cut: connections break
	Wipe  bool            // of a restart
	To    string          // of a transfer
	Rest  time.Duration   // of a step-down
	Why   string          // what it follows from
}

// Infer finds out what happened. The error says why no scenario can be made.
func Infer(sources []Source, o Options) (*Incident, error) {
	in := &Incident{Options: o, Clocks: map[string]time.Duration{}, Names: map[string]string{},
		setups: map[string]*recording.Setup{}, lives: map[string][]life{}, absent: map[string]bool{}}
	for _, s := range sources {
		if len(s.Records) == 0 {
			in.doubt("%s recorded nothing", s.Node)
			continue
		}
		if s.Damaged > 0 {
			in.doubt("%d records of %s are damaged", s.Damaged, s.Node)
		}
		s.Records = slices.Clone(s.Records)
		for i := range s.Records {
			s.Records[i].Time = s.Records[i].Time.In(o.To.Location())
		}
		in.sources = append(in.sources, s)
	}
	if len(in.sources) == 0 {
		return nil, errors.New("no node has recorded anything")
	}
	in.compareClocks()
	for _, s := range in.sources {
		in.records = append(in.records, s.Records...)
	}
	slices.SortStableFunc(in.records, byTime)
	if err := in.readSetup(); err != nil {
		return nil, err
	}
	in.findLives()
	in.findCuts()
	in.findCommands()
	if err := in.chooseWindow(); err != nil {
		return nil, err
	}
	in.Text = in.write(1)
	return in, nil
}

func byTime(a, b recording.Record) int { return a.Time.Compare(b.Time) }

func (in *Incident) doubt(format string, args ...any) {
	in.Doubts = append(in.Doubts, fmt.Sprintf(format, args...))
}

// source is what a node recorded, or what others saw of it. It is nil for a node that nobody
// knows.
func (in *Incident) source(node string) *Source {
	for i := range in.sources {
		if in.sources[i].Node == node {
			return &in.sources[i]
		}
	}
	return nil
}

// longestSilence bounds Incident.silence, as the mesh does, and is always that of the simulator.
const longestSilence = 3 * time.Second

// readSetup reads how the nodes elect: the newest that each has recorded.
func (in *Incident) readSetup() error {
	for _, r := range in.records {
		if r.Kind == recording.Opened && r.Group == in.Group && r.Setup != nil {
			in.setups[r.Node] = r.Setup
		}
	}
	if len(in.setups) == 0 {
		return fmt.Errorf("no node has recorded that it took part in election %q", in.Group)
	}
	told := slices.Sorted(maps.Keys(in.setups))
	in.setup = *in.setups[told[0]]
	for _, node := range told[1:] {
		s := in.setups[node]
		if !slices.Equal(s.Voters, in.setup.Voters) || !maps.Equal(s.Elector, in.setup.Elector) ||
			s.Scouting != in.setup.Scouting || s.Rule != in.setup.Rule {
			in.doubt("%s and %s have different voters or settings; the scenario has those of %s",
				told[0], node, told[0])
		}
	}
	in.nodes = slices.Clone(in.setup.Voters)
	for _, s := range in.sources {
		if !slices.Contains(in.nodes, s.Node) {
			in.nodes = append(in.nodes, s.Node) // an observer
		}
	}
	in.period, _ = time.ParseDuration(in.setup.Elector["heartbeat_broadcast"])
	misses, _ := strconv.Atoi(in.setup.Elector["heartbeat_miss_count"])
	in.silence = min(2*time.Duration(misses)*in.period, longestSilence) // as netmesh derives it
	in.chooseNames()
	for _, v := range in.setup.Voters {
		if in.source(v) == nil {
			in.doubt("there is no recording of %s: what happened to it follows from what others saw", v)
			in.sources = append(in.sources, in.bySight(v))
		}
	}
	return nil
}

// findCommands finds what nodes were told.
func (in *Incident) findCommands() {
	for _, r := range in.records {
		s := Step{At: r.Time, Do: string(r.Kind), Nodes: []string{r.Node}}
		switch r.Kind {
		case recording.Transfer:
			s.Nodes, s.To, s.Why = nil, r.To, r.Node+" was told to hand over"
		case recording.AddVoter, recording.RemoveVoter:
			s.Nodes, s.To, s.Why = nil, r.To, r.Node+" was told to change the voters"
		case recording.StepDown:
			s.Rest, s.Why = seconds(r.Seconds), r.Node+" was told to step down"
		case recording.Unfit, recording.Fit:
			s.Why = "its application said so"
		}
		if s.Why != "" && r.Group == in.Group {
			in.all = append(in.all, s)
		}
	}
}
