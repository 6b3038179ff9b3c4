package main_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

// service is a copy of a service beside each node of a mesh. A copy serves a
// request only if its own node leads, which it asks for each.
type service struct {
	addrs   map[string]string // of the copies, by node
	client  http.Client
	refused atomic.Int64 // requests to copies that do not lead

	mu       sync.Mutex
	answered map[string][]string // nodes whose copies answered a request
	claims   []claim
}

// claim is that a node said that it leads, at some time from asked to told.
type claim struct {
	node        string
	term        lsn.Term
	asked, told time.Time
}

func newService(t *testing.T, s *scene) *service {
	v := &service{addrs: map[string]string{}, answered: map[string][]string{}}
	v.client.Timeout = testkit.Limit(time.Second)
	v.client.Transport = &http.Transport{}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	for _, n := range s.Nodes() {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			v.serve(w, r, n)
		}))
		v.addrs[n.Name] = strings.TrimPrefix(server.URL, "http://")
		t.Cleanup(server.Close)
		watching.Go(func() { v.watch(ctx, n) })
	}
	t.Cleanup(func() { cancel(); watching.Wait(); v.client.CloseIdleConnections() })
	return v
}

func (v *service) serve(w http.ResponseWriter, r *http.Request, n *procs.Node) {
	if !v.leads(r.Context(), n) {
		v.refused.Add(1)
		http.Error(w, n.Name+" does not lead", http.StatusServiceUnavailable)
		return
	}
	v.mu.Lock()
	v.answered[r.URL.Path] = append(v.answered[r.URL.Path], n.Name)
	v.mu.Unlock()
	_, _ = w.Write([]byte(n.Name))
}

// leads asks a node whether it leads, and notes if it says so.
func (v *service) leads(ctx context.Context, n *procs.Node) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.AdminAddr+"/v1/leader",
		nil)
	if err != nil {
		return false
	}
	asked := time.Now()
	resp, err := v.client.Do(req)
	if err != nil {
		return false
	}
	told := time.Now()
	resp.Body.Close()
	term, err := strconv.ParseUint(resp.Header.Get("Bmqelect-Term"), 10, 64)
	if resp.StatusCode != http.StatusOK || err != nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.claims = append(v.claims, claim{n.Name, lsn.Term(term), asked, told})
	return true
}

// watch asks a node all the time, whether HAProxy sends it requests or not.
func (v *service) watch(ctx context.Context, n *procs.Node) {
	ticks := time.NewTicker(loadPace)
	defer ticks.Stop()
	for {
		v.leads(ctx, n)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// check demands that no request was answered twice, and that no node said that it
// leads after one of a later term had: two were never up by lease at once.
func (v *service) check(t *testing.T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for request, nodes := range v.answered {
		require.Len(t, nodes, 1, "request %s", request)
	}
	require.Empty(t, overlap(v.claims))
	leaders := map[lsn.Term]string{}
	for _, c := range v.claims {
		leaders[c.term] = c.node
	}
	require.GreaterOrEqual(t, len(leaders), 3, "leaders were killed and changed: %v", leaders)
}

// overlap returns a pair of claims that cannot both have been true of one leader
// after the other, if there is one.
func overlap(claims []claim) []claim {
	first := map[lsn.Term]claim{} // the earliest of each term
	for _, c := range claims {
		if f, ok := first[c.term]; !ok || c.told.Before(f.told) {
			first[c.term] = c
		}
	}
	for _, c := range claims {
		for term, later := range first {
			if term > c.term && c.asked.After(later.told) || term == c.term && c.node != later.node {
				return []claim{c, later}
			}
		}
	}
	return nil
}

func TestOverlapIsNoticed(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	one, two := claim{"n1", 7, at(0), at(10)}, claim{"n2", 8, at(5), at(20)}
	require.Empty(t, overlap([]claim{one, two, {"n1", 7, at(19), at(30)}}),
		"n1 may have led at 19, and n2 from 20 on")
	require.NotEmpty(t, overlap([]claim{one, two, {"n1", 7, at(21), at(30)}}))
	require.NotEmpty(t, overlap([]claim{one, {"n3", 7, at(0), at(10)}}), "one term has one leader")
}
