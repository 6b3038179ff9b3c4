package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// askAt asks a process how it stands; ok is false if it does not answer.
func askAt(addr string) (v view, ok bool) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr)
	if err != nil {
		return v, false
	}
	defer resp.Body.Close()
	return v, json.NewDecoder(resp.Body).Decode(&v) == nil
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 20*time.Millisecond, what)
}

// TestOneProcessAlone runs the program with a node that is alone, and leads.
func TestOneProcessAlone(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- command(ctx, []string{"run", "-data", dir, "-http", addr, "-grant", "200ms", "-every", "10ms"}, hclog.NewNullLogger())
	}()
	eventually(t, "all partitions in force", func() bool {
		v, ok := askAt(addr)
		return ok && v.Leading && len(v.InForce) == 12 && v.Why != ""
	})
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, command(t.Context(), []string{"check", filepath.Join(dir, "journal")}, hclog.NewNullLogger()))
}

func TestQuestionsThatAreNone(t *testing.T) {
	o := &office{}
	for body, want := range map[string]int{
		"{": http.StatusBadRequest, `{"node":7}`: http.StatusBadRequest, `{"node":"a"}`: http.StatusServiceUnavailable,
	} {
		w := httptest.NewRecorder()
		o.serve(w, httptest.NewRequest(http.MethodPost, "/ask", strings.NewReader(body)))
		require.Equal(t, want, w.Code, body)
	}
}

func TestAnAskerIsToldWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc((&office{}).serve))
	client := server.Client()
	_, err := post(t.Context(), client, server.URL, question{Node: "a"})
	require.ErrorContains(t, err, "ask "+server.URL+": 503 Service Unavailable: this node does not lead")
	server.Close()
	_, err = post(t.Context(), client, server.URL, question{Node: "a"})
	require.ErrorContains(t, err, "refused")
}

func TestWhereANodeServes(t *testing.T) {
	st := cluster.Status{Node: "a", AdminAddr: "own:1", Members: []cluster.MemberStatus{{Node: "b", AdminAddr: "b:1"}}}
	require.Equal(t, "own:1", addrOf("a", st))
	require.Equal(t, "b:1", addrOf("b", st))
	require.Empty(t, addrOf("c", st))
}

func TestCommandLinesThatAreWrong(t *testing.T) {
	for line, want := range map[string]string{
		"":                  `want "run" with its flags`,
		"walk":              `want "run" with its flags`,
		"check":             `want "run" with its flags`,
		"check nosuch":      "no such file",
		"run -grant 1ms":    "a grant of at least 100ms",
		"run -partitions 0": "at least 1 partition",
		"run -http nowhere": "listen tcp",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		err := command(ctx, strings.Fields(line), hclog.NewNullLogger())
		cancel()
		require.ErrorContains(t, err, want, line)
	}
}
