package sim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// plot is all that a run depends on. Each file in testdata/schedules holds a plot.
type plot struct {
	About    string `json:",omitzero"`
	Config   sim.Config
	Start    time.Duration // until the first step
	Schedule []step
	// Live demands a leader within a bound once all faults have ended.
	Live bool
}

// play plays a run, and returns how long it was in simulated time.
func (p *plot) play() (time.Duration, error) {
	var newest elector.Record
	p.Config.Observer = func(e *sim.Event) {
		if r, ok := e.Detail.(elector.Record); ok && e.Kind == sim.EventShown && newest.LSN.Less(r.LSN) {
			newest = r
		}
	}
	s, err := sim.New(p.Config)
	if err != nil {
		return 0, err
	}
	err = p.playOn(s, &newest)
	return s.Now(), err
}

// canElect is the premise of V4 where all nodes run and are connected: they are a quorum of the
// newest committed voters and of those of every newer record that a node accepted, and one of
// them that may stand is in all these sets.
func canElect(s *sim.Sim, cfg sim.Config, newest *elector.Record) bool {
	sets, standing := []elector.Roster{newest.Voters}, map[elector.Voter]bool{}
	if newest.LSN.IsZero() { // those of the configuration count by name
		sets[0] = elector.NewRoster()
		for _, n := range cfg.Nodes {
			if v := s.View(n.Elector.Self); v.Votes {
				sets[0] = sets[0].With(elector.Voter{Node: v.Node, Identity: v.Identity})
			}
		}
	}
	for _, n := range cfg.Nodes {
		v := s.View(n.Elector.Self)
		standing[elector.Voter{Node: v.Node, Identity: v.Identity}] = !n.Elector.NotCandidate
		if newest.LSN.Less(v.Record.Accepted.LSN) {
			sets = append(sets, v.Record.Accepted.Voters)
		}
	}
	in := map[elector.Voter]int{}
	for _, set := range sets {
		there := 0
		for _, v := range set.Voters() {
			if _, ok := standing[v]; ok {
				there++
				in[v]++
			}
		}
		if there < elector.Majority(len(set.Voters())) {
			return false
		}
	}
	for v, n := range in {
		if standing[v] && n == len(sets) {
			return true
		}
	}
	return false
}

func (p *plot) playOn(s *sim.Sim, newest *elector.Record) error {
	if err := s.RunFor(p.Start); err != nil {
		return err
	}
	if err := play(s, p.Schedule); err != nil || !p.Live {
		return err
	}
	s.SetFsync(p.Config.FsyncMin, p.Config.FsyncMax)
	if err := calm(s); err != nil {
		return err
	}
	if !canElect(s, p.Config, newest) {
		return s.RunFor(bound(p.Config)) // safely
	}
	if leads, err := leaderWithin(s, bound(p.Config)); leads || err != nil {
		return err
	}
	return spec.Broken("leaderless", "nobody leads until %s, %s after all faults have ended", s.Now(),
		bound(p.Config))
}

const schedules = "testdata/schedules"

// keepPlot writes a run that failed to a file, for TestSchedules.
func keepPlot(t *testing.T, p *plot, broken error) {
	if !t.Failed() || broken == nil {
		return
	}
	rule := ruleOf(broken)
	p.shorten(rule)
	p.About = rule + ": found by TestSwarm"
	content, err := p.text()
	require.NoError(t, err)
	name := fmt.Sprintf("%s-%08x", rule, crc32.ChecksumIEEE([]byte(content)))
	require.NoError(t, os.MkdirAll(schedules, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(schedules, name+".json"), []byte(content), 0o644))
	t.Logf("%d steps are enough: %v\nwritten to %s; run it again: "+
		"go test ./internal/lab/sim -run TestSchedules/%s", len(p.Schedule), p.Schedule, schedules, name)
}

// ruleOf names what a run broke; "" if nothing.
func ruleOf(err error) string {
	if err == nil {
		return ""
	}
	if v := (*spec.Violation)(nil); errors.As(err, &v) {
		return v.Rule
	}
	return "other"
}

// shorten leaves out steps as long as the same rule is broken, since rapid leaves many that do
// not matter. The remaining steps keep their times.
func (p *plot) shorten(rule string) {
	for size := len(p.Schedule) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(p.Schedule); {
			less := *p
			less.Schedule = slices.Delete(slices.Clone(p.Schedule), at, at+size)
			for _, st := range p.Schedule[at : at+size] {
				if at < len(less.Schedule) {
					less.Schedule[at].Wait += st.Wait
				}
			}
			if _, err := less.play(); ruleOf(err) == rule {
				*p = less
			} else {
				at += size
			}
		}
	}
}

// text is the run as JSON without what is zero, a node and a step on a line each.
func (p *plot) text() (string, error) {
	content, err := json.Marshal(p)
	text := string(content)
	for before := ""; before != text; { // an object may be empty then
		before, text = text, strings.ReplaceAll(zero.ReplaceAllString(text, "$1"), ",}", "}")
	}
	for _, item := range []string{`{"Elector":`, `{"Wait":`, `{"Do":`} {
		text = strings.ReplaceAll(text, item, "\n"+item)
	}
	return text + "\n", err
}

// zero is a field of an object that is zero, with what follows.
var zero = regexp.MustCompile(`"\w+":(?:0|""|false|null|\{\}|\[0(?:,0)*\])(?:,|(\}))`)

// TestSchedules plays what TestSwarm has found.
func TestSchedules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schedules, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var p plot
			require.NoError(t, json.Unmarshal(content, &p))
			_, err = p.play()
			require.NoError(t, err)
			again, err := p.text()
			require.NoError(t, err)
			require.Equal(t, string(content), again, "a part of the file says nothing")
		})
	}
}
