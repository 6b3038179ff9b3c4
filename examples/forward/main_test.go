package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// copyOf is a copy of the service that runs in this process.
type copyOf struct {
	url  string
	stop func()
}

// start starts a copy that can be joined at gossip.
func start(t *testing.T, node cluster.NodeID, gossip, join string) copyOf {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	timing := elector.Article()
	timing.InitialWait, timing.MaxRandomWait = timing.Promise(), 500*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir() // made before stop is registered, so that it is removed after that
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, cluster.Config{
			Node: node, Voters: []cluster.NodeID{"a", "b", "c"}, DataDir: dir,
			GossipAddr: gossip, MeshAddr: "127.0.0.1:0", Join: []string{join},
			Election: cluster.ElectionConfig{Timing: timing},
		}, ln)
	}()
	stop := func() {
		cancel()
		require.NoError(t, <-ended)
		ended <- nil
	}
	t.Cleanup(stop)
	return copyOf{"http://" + ln.Addr().String(), stop}
}

// get asks a copy, which may have been asked on behalf of another.
func (c copyOf) get(t *testing.T, header ...string) (code int, body string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/now", nil)
	require.NoError(t, err)
	for _, name := range header {
		req.Header.Set(name, "x")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestEveryCopyAnswersWithTheLeadersWords(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // to know a port that is free
	require.NoError(t, err)
	first := ln.Addr().String()
	require.NoError(t, ln.Close())
	copies := map[cluster.NodeID]copyOf{"a": start(t, "a", first, first)}
	for _, node := range []cluster.NodeID{"b", "c"} {
		copies[node] = start(t, node, "127.0.0.1:0", first)
	}
	// agree waits until every copy gives the answer of one, and returns which that is.
	agree := func() (leader cluster.NodeID) {
		require.Eventually(t, func() bool {
			answers := map[string]bool{}
			for _, c := range copies {
				_, body := c.get(t)
				answers[body] = true
			}
			for node := range copies {
				if len(answers) == 1 && answers[string(node)+" answers /now\n"] {
					leader = node
				}
			}
			return leader != ""
		}, testkit.Limit(30*time.Second), 50*time.Millisecond)
		return leader
	}
	var leader cluster.NodeID
	require.Eventually(t, func() bool { // but if leadership changes meanwhile
		leader = agree()
		for node, c := range copies {
			if code, _ := c.get(t, forwarded); (code == http.StatusOK) != (node == leader) {
				return false
			}
		}
		return true
	}, testkit.Limit(30*time.Second), time.Second, "it is forwarded once")
	copies[leader].stop()
	delete(copies, leader)
	require.NotEqual(t, leader, agree())
}
