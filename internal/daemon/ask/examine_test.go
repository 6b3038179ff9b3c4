package ask

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// healthy are the answers of three nodes, of which a leads.
func healthy() []Answer {
	ids := []cluster.NodeID{"a", "b", "c"}
	var answers []Answer
	for _, id := range ids {
		st := &cluster.Status{
			Cluster: "bees", Node: id, Identity: "of " + string(id), Version: "v1", Uptime: 60,
			Groups: []cluster.GroupStatus{{Group: "default", Role: "FOLLOWER", Term: 7, Leader: "a",
				Voters: slices.Clone(ids), Quorum: 2, Candidate: true}},
		}
		for _, other := range ids {
			if other != id {
				st.Members = append(st.Members, cluster.MemberStatus{Node: other, Voter: true, Gossip: "alive",
					GossipAddr: "g", Link: "up", RTT: 0.001})
			}
		}
		answers = append(answers, Answer{
			Node: id, via: "at " + string(id), Status: st, figures: admin.Figures{
				AheadLeast: -500 * time.Millisecond, AheadMost: 500 * time.Millisecond,
				Values: map[string]float64{
					"bmqelect_store_write_seconds_count": 4, "bmqelect_store_write_seconds_sum": 0.02,
					"bmqelect_lease_left_at_renewal_ratio_count":            1000,
					`bmqelect_lease_left_at_renewal_ratio_bucket{le="0.2"}`: 2,
				}},
		})
	}
	g := &answers[0].Status.Groups[0]
	g.Role, g.Leading, g.LeaseLeft = "LEADER", true, 0.8
	return answers
}

// scene is what nodes say, changed by the lines of a script.
type scene struct {
	t       *testing.T
	answers []Answer
}

// change carries out a line, such as "a,b to c: JSON".
func (s *scene) change(line string) {
	words, value, _ := strings.Cut(line, ": ")
	about := strings.Fields(words)
	for name := range strings.SplitSeq(about[0], ",") {
		s.changeOne(cluster.NodeID(name), about[1:], value)
	}
}

func (s *scene) changeOne(name cluster.NodeID, what []string, value string) {
	a := find(s.answers, name)
	merge := func(into any) { require.NoError(s.t, json.Unmarshal([]byte(value), into), value) }
	switch strings.Join(what[:min(len(what), 1)], "") {
	case "":
		merge(a.Status)
	case "election":
		merge(&a.Status.Groups[0])
	case "also": // in another election
		var g cluster.GroupStatus
		merge(&g)
		a.Status.Groups = append(a.Status.Groups, g)
	case "to":
		id := cluster.NodeID(what[1])
		i := slices.IndexFunc(a.Status.Members, func(m cluster.MemberStatus) bool { return m.Node == id })
		if i < 0 {
			i = len(a.Status.Members)
			a.Status.Members = append(a.Status.Members, cluster.MemberStatus{Node: id})
		}
		merge(&a.Status.Members[i])
	case "figures":
		merge(&a.figures.Values)
	case "ahead":
		least, most, _ := strings.Cut(value, " ")
		var wrong [2]error
		a.figures.AheadLeast, wrong[0] = time.ParseDuration(least)
		a.figures.AheadMost, wrong[1] = time.ParseDuration(most)
		require.NoError(s.t, errors.Join(wrong[:]...))
	case "silent":
		a.Status, a.Error = nil, value
	case "unknown": // its address
		a.via = ""
	case "new":
		s.answers = append(s.answers, Answer{Node: name, Error: value})
	case "nameless":
		s.answers = append(s.answers, Answer{via: string(name), Error: value})
	case "gone":
		s.answers = slices.DeleteFunc(s.answers, func(a Answer) bool { return a.Node == name })
	case "renamed":
		a.Node, a.Status.Node = cluster.NodeID(what[1]), cluster.NodeID(what[1])
	case "twice":
		st := *a.Status
		merge(&st)
		at := map[string]int{"first": 0, "last": len(s.answers)}[what[1]]
		s.answers = slices.Insert(s.answers, at, Answer{Node: name, via: "second", Status: &st})
	default:
		require.Fail(s.t, "no such change", what)
	}
}

// TestScenes compares what doctor, status and voters say of scenes with testdata/*.txt.
func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := scene{t, healthy()}
			for line := range strings.Lines(d.Input) {
				s.change(strings.TrimSpace(line))
			}
			var out strings.Builder
			r := examine(s.answers)
			switch d.Cmd {
			case "status":
				require.NoError(t, PrintStatus(&out, s.answers))
			case "page":
				require.NoError(t, PrintElections(&out, s.answers))
			case "voters": // as a knows them
				out.WriteString(VotersTable(*s.answers[0].Status, s.answers[0].election()))
			case "json":
				require.NoError(t, console.JSON(&out, r))
			case "doctor":
				require.NoError(t, r.Print(&out, 100))
			case "problems":
				for _, c := range r.Checks {
					s.fits(r, c)
				}
				r.Checks = slices.DeleteFunc(r.Checks, func(c Check) bool { return c.Level == OK })
				require.NoError(t, r.Print(&out, 100))
			}
			return out.String()
		})
	})
}

// fits demands that a check has all that one of its level has, and that nothing in the report says
// the contrary of a problem.
func (s *scene) fits(r Report, c Check) {
	require.Equal(s.t, c.Level != OK, c.Why != "" && c.Fix != "" && c.See == see(c.Kind), c)
	contrary := func(other Check) bool {
		return other.Level == OK && other.Subject == c.Subject && c.Kind != noLeader &&
			(other.Where == "" || other.Where == c.Where) // other nodes may know a leader
	}
	require.True(s.t, c.Level == OK || !slices.ContainsFunc(r.Checks, contrary), c)
}
