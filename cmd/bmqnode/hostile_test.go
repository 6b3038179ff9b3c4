package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// trap clears a terminal, rings it, forges a line, and turns the direction of text, in
// every way in which a terminal takes it.
const trap = "\x1b[2J\a\r\nforged\x7f\u009b31m\u202e"

// hostile is the admin side of a node that wants to take over the terminal of whoever
// looks at it. It leads until it is asked to do something.
func hostile(t *testing.T) (addr string) {
	var status cluster.Status
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/events" {
			fmt.Fprintf(w, "event: transition\ndata: %s\n\n", asJSON(t, admin.Event{
				Time: time.Now(), Node: "n1" + trap, From: trap, To: trap, Reason: trap, Leader: trap,
				Peer: trap,
			}))
			fmt.Fprintf(w, "event: reset\ndata: %s\n\n",
				asJSON(t, admin.Reset{Reason: trap, Status: status}))
			return
		}
		if r.URL.Path == "/metrics" {
			fmt.Fprintf(w, "bmqelect_%s{reason=%q} 1\n", strings.NewReplacer("\n", "").Replace(trap), trap)
			return
		}
		if r.Method == http.MethodPost && r.ContentLength%2 == 0 {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, trap)
		} else if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, asJSON(t, admin.Problem{Detail: trap}))
		} else {
			fmt.Fprint(w, asJSON(t, status))
		}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(serve))
	addr = server.Listener.Addr().String()
	voters := []cluster.NodeID{"n1" + trap, "n2" + trap}
	status = cluster.Status{
		Cluster: trap, Node: voters[0], Version: trap, Identity: trap, AdminAddr: addr, MeshAddr: trap,
		GossipAddr: trap, Failure: trap, Faults: trap,
		Groups: []cluster.GroupStatus{{
			Group: cluster.DefaultGroup, Role: trap, Leader: voters[0], Leading: true, Voters: voters,
			Quorum:      2,
			Explanation: trap, Unfit: trap, Work: trap, Supporters: voters,
		}},
		Members: []cluster.MemberStatus{{
			Node: voters[1], Voter: true, Gossip: trap, Version: trap, GossipAddr: trap, MeshAddr: trap,
			AdminAddr: trap,
			Link:      "down " + trap, LinkError: trap, Identity: trap,
		}},
		Emergencies: []cluster.EmergencyStatus{{Voters: voters, Lost: voters[1:], Reason: trap}},
		Findings: []findings.Finding{{Kind: findings.NameTwice, Peer: voters[1], Detail: trap,
			Advice: trap}},
		Anomalies: map[string]int{trap: 1}, AnomalyAges: map[string]cluster.Seconds{trap: 1},
		Refused: map[string]uint64{trap: 1},
	}
	server.Start() // not before the status is complete
	t.Cleanup(server.Close)
	return addr
}

func asJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// What a server says is shown, and obeyed by no terminal.
func TestNothingThatAServerSaysReachesTheTerminalAsItIs(t *testing.T) {
	t.Parallel()
	addr := hostile(t)
	harmless := func(command, text string) {
		t.Helper()
		require.Contains(t, text, `\x1b[2J`, "%s shows it", command)
		require.NotContains(t, text, "\nforged", command)
		obeyed := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
		require.Negative(t, obeyed, "%s: %q", command, text)
	}
	for _, command := range []string{
		"status", "doctor", "transfer", "transfer --to x", "step-down", "step-down --for 10s",
		"forget n3", "forget --here n3",
		"fault heal", "fault cut n1 n2", "fault isolate n1", "status --json",
	} {
		stdout, stderr, _ := nodes.Run(t, append(strings.Fields(command), "--admin", addr)...)
		if command == "status --json" {
			stdout = strings.ReplaceAll(stdout, `\\x1b`, `\x1b`)
		}
		harmless(command, stdout+stderr)
	}
	watch := nodes.Launch(t, exec.Command(nodes.Binary, "watch", "--admin", addr))
	require.Eventually(t, func() bool { return strings.Contains(watch.Said.String(), `\x1b[2J`) },
		nodes.Patience, 10*time.Millisecond)
	require.NoError(t, watch.Process.Kill())
	require.NotZero(t, watch.Code(t))
	harmless("watch", watch.Said.String())
}
