package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/lsn"
)

var three = []cluster.NodeID{"a", "b", "c"}

// processes is the whole service in virtual time: its own code on the nodes of a
// clustertest.Cluster, with calls in the place of the network.
type processes struct {
	t *testing.T
	*clustertest.Cluster
	ctx context.Context // ends with the test

	mu       sync.Mutex
	services map[cluster.NodeID]*service // of the newest start
	logs     map[cluster.NodeID]*bytes.Buffer
	running  sync.WaitGroup
}

func inVirtualTime(t *testing.T, story func(t *testing.T, p *processes)) {
	t.Helper()
	await := clustertest.Configure(func(c *cluster.Config) { c.Election.AwaitCampaign = true })
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		ctx, stop := context.WithCancel(context.Background())
		p := &processes{
			t: t, Cluster: c, ctx: ctx,
			services: map[cluster.NodeID]*service{}, logs: map[cluster.NodeID]*bytes.Buffer{},
		}
		t.Cleanup(func() { stop(); p.running.Wait() })
		for _, id := range three {
			p.logs[id] = &bytes.Buffer{}
			p.open(id)
		}
		story(t, p)
	}, await)
}

// open runs the service on a node that has started.
func (p *processes) open(id cluster.NodeID) {
	log := hclog.New(&hclog.LoggerOptions{JSONFormat: true, Output: p.logs[id], Mutex: &p.mu}).With(
		"node", id)
	s, faults := &service{node: p.Node(id), log: log}, p.Faults(id)
	s.ask = func(leader cluster.Leader, worker cluster.NodeID, granted *Tokens) error {
		if faults.Blocks(leader.Node) {
			time.Sleep(grant / 5)
			return errors.New("time-out")
		}
		p.mu.Lock()
		to := p.services[leader.Node]
		p.mu.Unlock()
		return to.Answer(worker, granted)
	}
	p.mu.Lock()
	p.services[id] = s
	p.mu.Unlock()
	p.running.Go(func() {
		time.Sleep(time.Duration(slices.Index(three, id)) * grant / 17) // they do not ask at one moment
		_ = s.run(p.ctx)                                                // fails if the node was crashed
	})
}

func (p *processes) restart(id cluster.NodeID, last time.Duration) {
	p.Crash(id)
	time.Sleep(last)
	p.Start(id)
	p.open(id)
}

// audit checks the logs.
func (p *processes) audit() report {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := audit(p.t, p.logs["a"].Bytes(), p.logs["b"].Bytes(), p.logs["c"].Bytes())
	require.Empty(p.t, r.problems)
	return r
}

func TestANodeThatNobodyKnowsIsRefused(t *testing.T) {
	err := run(t.Context(), config("x", []string{"a=127.0.0.1:1"}), hclog.NewNullLogger())
	require.ErrorContains(t, err, "-node must name one of the arguments")
}

func TestPartitionsAreSharedAndStayWhereTheyAre(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, p *processes) {
		time.Sleep(10 * time.Second)
		before := p.audit()
		require.GreaterOrEqual(t, before.assigned, partitions)
		time.Sleep(time.Minute)
		require.NoError(t, p.Node(p.AwaitLeader()).Transfer(t.Context(), ""))
		time.Sleep(time.Minute)
		after := p.audit()
		require.Equal(t, before.assigned, after.assigned, "a new leader moves nothing")
		require.InDelta(t, before.worked+partitions*20*120, after.worked, partitions*40,
			"and stops nobody")
	})
}

// The successor of a leader that died moves what the dead one owned, and later gives it as much
// back. Nothing else moves.
func TestADeadWorkersPartitionsGoToOthers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, p *processes) {
		time.Sleep(10 * time.Second)
		dead := p.AwaitLeader()
		before := p.audit()
		p.Crash(dead)
		time.Sleep(10 * time.Second)
		without := p.audit()
		require.Equal(t, before.assigned+partitions/3, without.assigned)
		require.Greater(t, without.worked-before.worked, partitions*20*5,
			"the others work on all partitions")
		p.Start(dead)
		p.open(dead)
		time.Sleep(10 * time.Second)
		require.Equal(t, without.assigned+partitions/3, p.audit().assigned)
	})
}

// The seed is printed if the test fails; BMQELECT_SEED repeats it.
func TestNoPartitionIsEverWorkedOnTwiceAtOnce(t *testing.T) {
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("BMQELECT_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("BMQELECT_SEED=%d", seed)
	inVirtualTime(t, func(t *testing.T, p *processes) {
		random := rand.New(rand.NewPCG(seed, 0))
		for range 60 {
			id, last := three[random.IntN(len(three))], time.Duration(random.Int64N(int64(4*grant)))
			if leader := p.Leader(); leader != "" && random.IntN(2) == 0 {
				id = leader
			}
			switch random.IntN(3) {
			case 0:
				p.restart(id, last)
			case 1:
				p.Pause(id)
				time.Sleep(last)
				p.Resume(id)
			default:
				p.Isolate(id)
				time.Sleep(last)
				p.Heal()
			}
			time.Sleep(last)
		}
		r := p.audit()
		require.Greater(t, r.terms, 5)
		require.Greater(t, r.assigned, 3*partitions)
	})
}

func TestALeaderThatLostItsLeadershipGrantsNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, p *processes) {
		id := p.AwaitLeader()
		time.Sleep(10 * time.Second)
		s, granted := p.services[id], Tokens{}
		require.NoError(t, s.Answer(id, &granted))
		require.NotEmpty(t, granted)
		p.Isolate(id)
		time.Sleep(10 * time.Second)
		require.ErrorIs(t, s.Answer(id, &granted), cluster.ErrNotLeader)
	})
}

func TestAWorkerStopsWithItsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := hclog.New(&hclog.LoggerOptions{JSONFormat: true, Output: &log})
		s := &service{log: logger, working: Tokens{7: {Term: 1, Counter: 1}},
			until: time.Now().Add(grant)}
		s.work()
		time.Sleep(grant)
		s.work()
		require.Equal(t, 1, strings.Count(log.String(), `"worked"`))
	})
}

// Each worker's load is written as a letter a partition; an upper case letter has moved.
func TestShareOutMovesTheLeast(t *testing.T) {
	for name, c := range map[string]struct{ before, workers, after string }{
		"nobody has anything":       {"............", "abc", "CBACBACBACBA"},
		"nobody is alive":           {"aaaabbbbcccc", "", "aaaabbbbcccc"},
		"all is well":               {"abcabcabcabc", "abc", "abcabcabcabc"},
		"one is dead":               {"aaaabbbbcccc", "bc", "CBCBbbbbcccc"},
		"it is back":                {"cbcbbbbbcccc", "abc", "AAAAbbbbcccc"},
		"loads that differ by one":  {"aaabbbcccddd", "abcd", "aaabbbcccddd"},
		"a fifth, and it gets some": {"aaabbbcccddd", "abcde", "EaaEbbcccddd"},
	} {
		t.Run(name, func(t *testing.T) {
			var before Table
			for p, w := range strings.Split(c.before, "") {
				before[p] = Owner{Worker: cluster.NodeID(strings.Trim(w, ".")), LSN: lsn.LSN{Term: 1}}
			}
			var workers []cluster.NodeID
			for _, w := range c.workers {
				workers = append(workers, cluster.NodeID(w))
			}
			after := ""
			for p, o := range before.shareOut(workers) {
				if o != before[p] {
					o.Worker = cluster.NodeID(strings.ToUpper(string(o.Worker)))
				}
				after += string(o.Worker)
			}
			require.Equal(t, c.after, after)
		})
	}
}
