package scenario

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/base/yamltext"
	"github.com/bmqelect/bmqelect/scouting"
)

// Load reads and checks a file. Each of set is a key=value, as in elector.lease=1s,
// that replaces a setting of the file before anything follows from it; of several
// for one key the last counts.
func Load(path string, set ...string) (*Scenario, error) {
	text, err := limit.ReadFile(path, yamltext.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("load scenario: %w", err)
	}
	return Parse(path, text, set...)
}

// Parse is Load for a text in memory; file is what errors call it. The error
// has a line for every problem: those with the text's shape, or, if there is none,
// those with what it says.
func Parse(file string, text []byte, set ...string) (*Scenario, error) {
	var keys fileKeys
	b := &builder{report: &report{}, s: &Scenario{File: file}}
	b.decode(text, &keys)
	b.override(&keys, set)
	if len(b.problems) == 0 {
		b.build(&keys)
	}
	if err := b.err(file); err != nil {
		return nil, err
	}
	return b.s, nil
}

// Find returns the scenario files that the paths name: files as they are,
// folders searched with all that is below them for *.yaml. The result is sorted,
// without repetitions. A folder without a scenario is an error.
func Find(paths ...string) ([]string, error) {
	var found []string
	for _, path := range paths {
		files, err := find(path)
		if err != nil {
			return nil, fmt.Errorf("find scenarios: %w", err)
		}
		found = append(found, files...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func find(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{filepath.Clean(path)}, err
	}
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(name) == ".yaml" {
			files = append(files, name)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no file in %s has a name that ends in .yaml", path)
	}
	return files, err
}

// overridable are the settings outside of elector and network.
var overridable = []string{"profile", "scouting", "rule", "duration", "seed"}

// override replaces settings. What follows from them is read later.
func (r *report) override(f *fileKeys, set []string) {
	settings := fieldsOf[scalar](f)
	maps.DeleteFunc(settings, func(key string, _ *scalar) bool {
		return !slices.Contains(overridable, key)
	})
	for key, s := range fieldsOf[scalar](&f.Elector.keys) {
		settings["elector."+key] = s
	}
	for key, s := range fieldsOf[scalar](&f.Network.keys) {
		settings["network."+key] = s
	}
	for _, text := range set {
		from := place{override: "--set " + text}
		key, value, ok := strings.Cut(text, "=")
		switch known := slices.Sorted(maps.Keys(settings)); {
		case !ok || key == "":
			r.at(from, "want key=value, as in elector.lease=1s")
		case settings[key] == nil:
			r.at(from, "unknown setting %q: %s", key, suggest(key, known))
		default:
			from.key = key[strings.Index(key, ".")+1:]
			*settings[key] = scalar{from, value}
		}
	}
}

// fileKeys are the keys of a file.
type fileKeys struct {
	Name, About, Source scalar
	SimulatedOnly       scalar `yaml:"simulated_only"`

	Nodes    nodeList
	Profile  scalar
	Scouting scalar
	Rule     scalar
	Elector  mapping[electorKeys]
	Network  mapping[linkKeys]
	Begin    mapping[beginKeys]
	Duration scalar
	Seed     scalar
	Timeline []mapping[stepKeys]
	Expect   []mapping[expectKeys]
}

type linkKeys struct{ Delay, Jitter, Loss, Duplicate, Reorder scalar }

type beginKeys struct{ Leader, Term scalar }

// builder fills in a Scenario from the keys of a file.
type builder struct {
	*report
	s *Scenario
}

// build reads everything, in an order in which each part needs those before.
func (b *builder) build(k *fileKeys) {
	s, start := b.s, place{pos: Pos{1, 1}}
	for _, required := range []struct {
		key   string
		there bool
	}{{"name", k.Name.there()}, {"nodes", k.Nodes.there()}, {"duration", k.Duration.there()}} {
		if !required.there {
			b.at(start, "%q is missing: a scenario has a name, nodes and a duration", required.key)
		}
	}
	s.Seed, s.Network.Delay = 1, time.Millisecond
	read(b, k.Name, &s.Name, parseLine)
	read(b, k.About, &s.About, parseLine)
	read(b, k.Source, &s.Source, parseLine)
	read(b, k.SimulatedOnly, &s.SimulatedOnly, parseLine)
	read(b, k.Duration, &s.Duration, parsePositive)
	read(b, k.Seed, &s.Seed, parseSeed)
	b.nodes(k.Nodes)
	b.election(k)
	b.link(&k.Network.keys, &s.Network)
	b.begin(k.Begin)
	b.timeline(k.Timeline)
	b.expectations(k.Expect)
	if s.SimulatedOnly == "" {
		s.SimulatedOnly = s.notLive()
	}
}

// link reads how a link behaves, and returns what was said; what is left out stays as it is in l.
func (b *builder) link(k *linkKeys, l *Link) (said []string) {
	duration := func(s scalar, to *time.Duration) {
		if read(b, s, to, parseDuration) {
			said = append(said, s.key+"="+span(*to))
		}
	}
	share := func(s scalar, to *int) {
		if read(b, s, to, parseShare) {
			said = append(said, s.key+"="+percent(*to))
		}
	}
	duration(k.Delay, &l.Delay)
	duration(k.Jitter, &l.Jitter)
	share(k.Loss, &l.Loss)
	share(k.Duplicate, &l.Duplicate)
	share(k.Reorder, &l.Reorder)
	return said
}

// begin reads the leadership of time 0, and reports why there could be none.
func (b *builder) begin(m mapping[beginKeys]) {
	if !m.there() {
		return
	}
	in, begin, leader := m.keys, &b.s.Begin, m.keys.Leader
	begin.Term = 1
	read(b, in.Term, &begin.Term, parseTerm)
	if !leader.there() {
		b.at(m.place, "begin has no leader: name one, or leave begin out for a cold start")
		return
	}
	id, ok := b.candidate(leader)
	if !ok {
		return
	}
	begin.Leader = id
	present := 0
	for _, n := range b.s.Nodes {
		switch {
		case n.Absent && n.ID == id:
			b.at(leader.place, "%s is absent at first: begin with a leader that is there", id)
		case n.Absent:
		case n.Term != 0:
			b.at(leader.place, "begin puts all nodes that are there in its term: "+
				"%s must have no term of its own or be absent", n.ID)
		}
		if !n.Absent && !n.Observer {
			present++
		}
	}
	if need := b.s.Election.QuorumSize(); present < need {
		b.at(leader.place, "%s cannot have been elected: "+
			"that takes %d voters, and %d are there at first", id, need, present)
	}
}

// Config returns the elector's configuration of one of the scenario's nodes.
func (s *Scenario) Config(n Node) elector.Config {
	c := s.Election
	c.Self, c.Priority, c.NotCandidate = n.ID, n.Priority, n.NotCandidate
	if n.Join {
		c.Voters, c.Quorum = nil, 0
	}
	return c
}

// notLive says what of the scenario real processes on a real network cannot be
// made to do; "" if nothing.
func (s *Scenario) notLive() string {
	var why []string
	cannot := func(found bool, what string) {
		if found && !slices.Contains(why, what) {
			why = append(why, what)
		}
	}
	look := func(l Link) {
		cannot(l.Duplicate > 0, "duplicate messages")
		cannot(l.Reorder > 0, "reorder messages")
	}
	look(s.Network)
	for _, n := range s.Nodes {
		cannot(n.ClockRatePPM != 0, "run clocks at different rates")
		cannot(n.Term != 0, "start with a term on disk")
	}
	cannot(s.Election.Takeover != 0, "take over by priority")
	cannot(len(s.Election.Voters) > scouting.MaxVoters,
		fmt.Sprintf("vote if they are more than %d", scouting.MaxVoters))
	for _, step := range s.Timeline {
		look(step.Action.Link)
		cannot(step.Action.Do == "unfit" || step.Action.Do == "fit", "be unfit")
		cannot(step.Action.Unsynced != "", "choose what a crash leaves of an unfinished write")
	}
	if why == nil {
		return ""
	}
	return "real processes cannot be made to " + strings.Join(why, ", nor to ")
}
