package metrics

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/scouting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is a node that says what a test wants.
type told struct {
	status cluster.Status
	stats  cluster.Stats
}

func (s told) StatusOf(cluster.Selection) cluster.Status { return s.status }
func (s told) StatsOf(cluster.Selection) cluster.Stats   { return s.stats }

// busy is a node of which every metric has something to say.
func busy() told {
	return told{
		cluster.Status{
			Cluster: "prod", Node: "a", Version: "v1.2.3", Identity: "id", Boot: 7, Failure: "disk full",
			Members:        []cluster.MemberStatus{{Node: "b", Voter: true}},
			CertificateEnd: time.Unix(1_800_000_000, 0),
			Emergencies: []cluster.EmergencyStatus{{
				Lost: []cluster.NodeID{"d", "e"}, Readmitted: []cluster.ReadmissionStatus{{Node: "e"}},
			}},
			Probes:    []health.Status{{Name: "disk", Fit: true, Failures: 2, Seconds: 0.004}},
			Anomalies: map[string]int{"two-leaders": 1, "malformed": 2},
			Refused:   map[string]uint64{"garbage": 3},
		},
		cluster.Stats{
			Elections: []cluster.ElectionStats{{
				Group: "default", Role: elector.Leader, Leader: "a", Term: 5,
				LSN:     lsn.LSN{Term: 5, Counter: 12},
				Leading: true, LeaseLeft: .75, Quorum: 2, Leaderships: 4, WorkOverdue: true, WorkEnds: 8,
				Record: &cluster.RecordStatus{
					Accepted: lsn.LSN{Term: 5, Counter: 4}, Committed: lsn.LSN{Term: 5, Counter: 3},
					ValueSize: 19, Voters: []cluster.Voter{{Node: "a"}, {Node: "b"}},
					Behind: []cluster.NodeID{"b"}, Change: "add c", Configured: []cluster.NodeID{"a"},
				},
				QoS: &cluster.QoSStatus{
					Asked: detector.QoS{Detect: 250 * time.Millisecond, Mistakes: detector.Recurrence(time.Hour),
						Accuracy: .99},
					Period: .05, Wanted: .06, Loss: .01, Delay: .001, Deviation: .002,
					Detect: .2, Mistakes: 3700, Accuracy: .999, Met: true,
				},
			}},
			Sums: cluster.Sums{
				Open: 1, Roles: map[string]int{"LEADER": 1}, Leading: 1, WorkOverdue: 1, WorkEnds: 8,
				LongestWithout: 1.5, HighestTerm: 5, Quorum: 2,
				VotersBehind: 1, VotersChange: 1,
			},
			Links: []netmesh.LinkStatus{{
				Peer: netmesh.PeerInfo{Node: "b"}, Up: true, RTT: 3 * time.Millisecond, Loss: .25,
				Queued:   9,
				FramesIn: 1, FramesOut: 2, BytesIn: 3, BytesOut: 4,
			}},
			Clocks: map[cluster.NodeID]findings.Clock{"b": {Rate: 150, Doubt: 20}},
			Findings: []findings.Finding{{Kind: findings.ClockRate, Peer: "b"},
				{Kind: findings.ClockRate, Peer: "c"}},
			Voters: 3, VotersReachable: 2,
			LeaderChanges:    map[elector.Reason]uint64{elector.Elected: 6},
			ScoutingReceived: cluster.Answers{Yes: 4, No: map[scouting.Cause]uint64{scouting.CauseRank: 2}},
			VotesGiven:       cluster.Answers{Yes: 1},
			Phases: map[string]cluster.Histogram{
				"scouting": {Bounds: []float64{.1, 1}, Counts: []uint64{1, 2, 3}, Sum: 7.5}},
			StoreWriting: 1.5, MissedEvents: 13, Stalls: 15, PauseLeft: 16, RecordsLost: 17,
			LogLinesLost: 18, Uninvited: map[string]uint64{"no-prefix": 19},
			DatagramsDropped: map[string]uint64{"forged": 20},
		},
	}
}

// scrape is what a handler answers to Prometheus.
func scrape(t *testing.T, source Source) string {
	w := httptest.NewRecorder()
	Handler(source, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return w.Body.String()
}

var _ = flag.Bool("rewrite", false, "write testdata/busy.txt")

// TestFiguresArriveUnderTheirNames: testdata/busy.txt is all that a busy node says.
func TestFiguresArriveUnderTheirNames(t *testing.T) {
	const file = "testdata/busy.txt"
	var said strings.Builder
	for line := range strings.Lines(scrape(t, busy())) {
		if strings.HasPrefix(line, "bmqelect_") {
			said.WriteString(line)
		}
	}
	testkit.Golden(t, file, said.String())
	for _, begin := range []string{"\ngo_goroutines ", "\ngo_build_info{"} {
		require.Contains(t, scrape(t, busy()), begin)
	}
}

func TestWhatIsDeclaredIsWhatIsCollected(t *testing.T) {
	strict := prometheus.NewPedanticRegistry()
	require.NoError(t, strict.Register(collector{busy()}))
	gathered, err := strict.Gather()
	require.NoError(t, err)
	require.Len(t, gathered, len(metrics), "each has something to say")
}

func TestAsLittleIsSaidOfAQoSAsIsKnown(t *testing.T) {
	s := busy()
	asked := detector.QoS{Duration: time.Second}
	s.stats.Elections[0].QoS = &cluster.QoSStatus{Asked: asked, Detect: 2}
	said := scrape(t, s)
	require.Contains(t, said, `bmqelect_qos_seconds{group="default",time="asked-duration"} 1`)
	require.Contains(t, said, `bmqelect_qos_seconds{group="default",time="detect"} 2`)
	require.Equal(t, 2, strings.Count(said, "\nbmqelect_qos_seconds{"))
	require.NotContains(t, said, "bmqelect_qos_accuracy_ratio{")
}

func TestALinkThatIsDownHasNoPings(t *testing.T) {
	s := busy()
	s.stats.Links[0].Up = false
	said := scrape(t, s)
	require.Contains(t, said, `bmqelect_link_up{peer="b"} 0`)
	require.NotContains(t, said, "bmqelect_link_rtt_seconds{")
	require.NotContains(t, said, "bmqelect_link_loss_ratio{")
}

// TestTheSeriesOfElectionsAreBounded opens and closes elections on a real node: as long as more
// than maxElections are open, only the default one has series, and the sums have all.
func TestTheSeriesOfElectionsAreBounded(t *testing.T) {
	node, err := cluster.Start(t.Context(), cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a", "b"}, DataDir: t.TempDir(), MeshAddr: "127.0.0.1:0",
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close(context.Background())) })
	var others []*cluster.Election
	for _, c := range []struct{ open, listed int }{
		{1, 1}, {2, 2}, {maxElections, maxElections}, {maxElections + 1, 1},
		{maxElections, maxElections},
	} {
		for len(others)+1 < c.open {
			e, err := node.Election(fmt.Sprintf("a%04d", len(others)), cluster.ElectionConfig{})
			require.NoError(t, err)
			others = append(others, e)
		}
		for len(others)+1 > c.open {
			require.NoError(t, others[len(others)-1].Close(t.Context()))
			others = others[:len(others)-1]
		}
		w := httptest.NewRecorder()
		Handler(node, nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		said := w.Body.String()
		for _, name := range []string{"role", "has_leader", "term", "leaderships_total"} {
			require.Equal(t, c.listed, strings.Count(said, "\nbmqelect_"+name+"{"), "%s of %d", name, c.open)
		}
		require.Contains(t, said, `bmqelect_role{group="default"} 1`)
		require.Contains(t, said, fmt.Sprintf("\nbmqelect_elections_unlisted %d\n", c.open-c.listed))
		require.Contains(t, said, fmt.Sprintf("\nbmqelect_elections_without_leader %d\n", c.open))
		require.Contains(t, said, fmt.Sprintf("\nbmqelect_elections{role=\"FOLLOWER\"} %d\n", c.open))
		require.NotContains(t, said, "bmqelect_elections_without_leader_longest_seconds 0\n")
	}
}

func TestManyMembersAreBoundedAndVotersComeFirst(t *testing.T) {
	var s told
	for i := range maxPeers + 20 {
		id := cluster.NodeID(fmt.Sprintf("m%04d", i))
		s.stats.Links = append(s.stats.Links, netmesh.LinkStatus{Peer: netmesh.PeerInfo{Node: id}})
		s.status.Members = append(s.status.Members, cluster.MemberStatus{Node: id, Voter: i > maxPeers})
	}
	said := scrape(t, s)
	require.Equal(t, maxPeers, strings.Count(said, "\nbmqelect_link_up{"))
	require.Contains(t, said, fmt.Sprintf(`bmqelect_link_up{peer="m%04d"}`, maxPeers+19))
	require.Contains(t, said, `bmqelect_link_up{peer="m0000"}`)
	require.Contains(t, said, "\nbmqelect_peers_unlisted 20\n")
}

func TestNothingLacksACounterOfItsOwn(t *testing.T) {
	require.Contains(t, (netmesh.ReasonOutdated + 1).String(), "reason(", "the last reason is put out")
	require.Contains(t, (elector.AnomalyOtherLineage + 1).String(), "anomaly(",
		"the last kind is put out")
}

func TestNamesKeepPrometheusConventions(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(scrape(t, busy()))).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestScrapesOfANodeThatHangsDoNotPileUp(t *testing.T) {
	hung := stuck{make(chan struct{}), make(chan struct{})}
	server := httptest.NewServer(Handler(hung, nil))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	answers := make(chan int)
	ask := func() {
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			answers <- 0
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		answers <- resp.StatusCode
	}
	for range maxScrapes {
		go ask()
		<-hung.asked
	}
	go ask()
	select {
	case code := <-answers:
		require.Equal(t, http.StatusServiceUnavailable, code, "one too many")
	case <-hung.asked:
		t.Error("one too many was let in")
		go func() { <-answers }()
	}
	close(hung.freed)
	for range maxScrapes {
		require.Equal(t, http.StatusOK, <-answers)
	}
}

// stuck is a node whose driver does not answer before it is freed.
type stuck struct{ asked, freed chan struct{} }

func (s stuck) StatusOf(cluster.Selection) cluster.Status {
	s.asked <- struct{}{}
	<-s.freed
	return cluster.Status{}
}

func (stuck) StatsOf(cluster.Selection) cluster.Stats { return cluster.Stats{} }
