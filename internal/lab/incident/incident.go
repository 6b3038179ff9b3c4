// Package incident makes a scenario of what the nodes of a cluster recorded, so that the
// simulator shows the incident again. It is pure: records go in, a text comes out.
//
// Nobody records that a cable was cut: it follows from what both ends of a link saw. The
// order of the work, each a file:
//
//   - clocks.go: the nodes' wall clocks are compared by what two of them saw
//   - lives.go: when each process ran, and when it was paused
//   - links.go: which links were lost although both ends ran, in which direction
//   - scenario.go: which part of it is the incident, and its text as a scenario
//   - recorded.go: what the nodes recorded, as a run
//   - replay.go: under which seed the simulator shows the same leaders for the same reasons
//   - text.go: the report for people
//
// Package record collects the records and writes the files.
package incident

import (
	"cmp"
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
}

// Options say which incident is meant.
type Options struct {
	Group    string    // the election
	From, To time.Time // on the clock of the first source; all is told in the time zone of To
}

// Incident is what follows from the recordings. Its times are on the clock of the first
// source.
type Incident struct {
	Start  time.Time // time 0 of the scenario
	End    time.Time
	Seen   []Seen                      // what was recorded, in the order of time
	Clocks map[string]time.Duration    // how much a node's clock is ahead, where that counts
	Led    []recording.Leadership      // from Start to End, as the nodes saw it
	Steps  []Step                      // from Start to End, in the order of time
	Doubts []string                    // what does not follow from the recordings
	Names  map[string]string           // of nodes in the scenario, where they differ
	Text   []byte                      // the scenario
	first  string                      // the node by whose clock the times are
	setup  recording.Setup             // of the election
	nodes  []string                    // all, voters first
	setups map[string]*recording.Setup // of the nodes
	absent map[string]bool             // nodes that do not run at the start
	period time.Duration               // of the heartbeats

	o       Options
	sources []Source
	lives   map[string][]life
}

// Seen is one thing that nodes recorded, within a second of each other.
type Seen struct {
	At    time.Time // of the first
	Nodes []string
	Text  string
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
	in := &inference{Incident: &Incident{o: o,
		Clocks: map[string]time.Duration{}, Names: map[string]string{},
		setups: map[string]*recording.Setup{},
	}}
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
	in.first = in.sources[0].Node
	in.compareClocks()
	if err := in.readSetup(); err != nil {
		return nil, err
	}
	in.findLives()
	in.findCuts()
	in.findCommands()
	in.findLeaders()
	if err := in.chooseWindow(); err != nil {
		return nil, err
	}
	in.tell()
	in.Text = in.write(1)
	return in.Incident, nil
}

// inference is an Incident that is being made.
type inference struct {
	*Incident
	silence time.Duration // after which an end of a link gives it up
	all     []Step
}

func (in *inference) doubt(format string, args ...any) {
	in.Doubts = append(in.Doubts, fmt.Sprintf(format, args...))
}

// step adds a step.
func (in *inference) step(s Step) { in.all = append(in.all, s) }

// source is what a node recorded; nil if that is not at hand.
func (in *Incident) source(node string) *Source {
	for i := range in.sources {
		if in.sources[i].Node == node {
			return &in.sources[i]
		}
	}
	return nil
}

// readSetup reads how the nodes elect: the newest that each has recorded.
func (in *inference) readSetup() error {
	for _, s := range in.sources {
		for _, r := range s.Records {
			if r.Kind == recording.Opened && r.Group == in.o.Group && r.Setup != nil {
				in.setups[s.Node] = r.Setup
			}
		}
	}
	if len(in.setups) == 0 {
		return fmt.Errorf("no node has recorded that it took part in election %q", in.o.Group)
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
	in.silence = min(2*time.Duration(misses)*in.period, silence) // as netmesh derives it
	for _, n := range in.nodes {
		in.name(n)
	}
	for _, v := range in.setup.Voters {
		if in.source(v) == nil {
			in.doubt("there is no recording of %s: what happened to it follows from what others saw", v)
		}
	}
	return nil
}

// silence is the longest time without a sign of life after which an end of a link gives it
// up: of the mesh, and always of the simulator.
const silence = 3 * time.Second

// findCommands finds what nodes were told.
func (in *inference) findCommands() {
	for _, s := range in.sources {
		for _, r := range s.Records {
			if r.Group != in.o.Group {
				continue
			}
			switch r.Kind {
			case recording.Transfer:
				in.step(Step{At: r.Time, Do: "transfer", To: r.To, Why: s.Node + " was told to hand over"})
			case recording.StepDown:
				in.step(Step{At: r.Time, Do: "step-down", Nodes: []string{s.Node},
					Rest: time.Duration(r.Seconds * float64(time.Second)),
					Why:  s.Node + " was told to step down"})
			case recording.Unfit, recording.Fit:
				in.step(Step{At: r.Time, Do: string(r.Kind), Nodes: []string{s.Node},
					Why: "its application said so"})
			}
		}
	}
}

// findLeaders finds who led.
func (in *inference) findLeaders() {
	var views [][]recording.Leadership
	for _, s := range in.sources {
		views = append(views, recording.Leaderships(s.Records))
	}
	other := func(l recording.Leadership) bool { return l.Group != in.o.Group }
	in.Led = slices.DeleteFunc(recording.Merge(views...), other)
}

// tell makes sentences of the records of the window.
func (in *inference) tell() {
	var all []Seen
	for _, s := range in.sources {
		for _, r := range s.Records {
			if text := in.sentence(&r); text != "" && !r.Time.Before(in.Start) && !r.Time.After(in.End) {
				all = append(all, Seen{r.Time, []string{s.Node}, text})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Seen) int { return a.At.Compare(b.At) })
	latest := map[string]int{} // place of a text
	for _, s := range all {
		at, known := latest[s.Text]
		if known && s.At.Sub(in.Seen[at].At) < soon && !slices.Contains(in.Seen[at].Nodes, s.Nodes[0]) {
			in.Seen[at].Nodes = append(in.Seen[at].Nodes, s.Nodes[0])
			continue
		}
		latest[s.Text] = len(in.Seen)
		in.Seen = append(in.Seen, s)
	}
}

// sentence says in words what a record tells; "" if that is of another election.
func (in *inference) sentence(r *recording.Record) (text string) {
	switch r.Kind {
	case recording.Started:
		return fmt.Sprintf("started, boot %d", r.Boot)
	case recording.Ended:
		return "ended in good order"
	case recording.LinkUp:
		text = "link to " + r.Peer + " up"
	case recording.LinkDown:
		text = "link to " + r.Peer + " down: " + r.Why
	case recording.Died:
		return r.Peer + " is proven dead: " + r.Why
	case recording.Held:
		return fmt.Sprintf("was held up for %.3g s", r.Seconds)
	}
	if r.Faults != "" {
		text += " (a rehearsal had cut " + r.Faults + ")"
	}
	if r.Group != in.o.Group || text != "" {
		return text
	}
	switch r.Kind {
	case recording.Transition:
		text = fmt.Sprintf("%s -> %s %s, term %d", r.From, r.To, r.Reason, r.Term)
		if r.Leader != "" {
			text += ", leader " + r.Leader
		}
	case recording.Transfer:
		text = "was told to hand over to " + cmp.Or(r.To, "the best follower")
	case recording.StepDown:
		text = fmt.Sprintf("was told to step down for %g s", r.Seconds)
	case recording.Unfit, recording.Fit:
		text = "its application is " + string(r.Kind)
	}
	return text
}
