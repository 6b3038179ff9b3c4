package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

const maxBody = 1 << 20 // bytes of a question or an answer

// handler serves questions of workers at POST /ask, and GET / for people.
func handler(p *process) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ask", func(w http.ResponseWriter, r *http.Request) { p.office.serve(w, r) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { reply(w, p.view()) })
	return mux
}

func (o *office) serve(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil {
		http.Error(w, "no question: "+err.Error(), http.StatusBadRequest)
		return
	}
	a, err := o.answer(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	reply(w, a)
}

// view is what a process tells people.
type view struct {
	Node    cluster.NodeID  `json:"node"`
	Leading bool            `json:"leading"`
	InForce map[int]lsn.LSN `json:"in_force"` // partitions, and the LSNs of their assignments
	Why     string          `json:"why"`      // how the election stands
}

func (p *process) view() view {
	return view{
		Node: p.hold.node, Leading: p.office.leads(), InForce: p.hold.inForce(),
		Why: p.node.Default().Status().Explanation,
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a caller that is gone needs no answer
}

// askByHTTP returns an asker. The nodes tell each other where they serve: that is
// what Config.AdminAddr is for.
func askByHTTP(node *cluster.Node, client *http.Client) asker {
	return func(ctx context.Context, leader cluster.NodeID, q question) (answer, error) {
		addr := addrOf(leader, node.Status())
		if addr == "" {
			return answer{}, fmt.Errorf("ask node %s: its address is not known yet", leader)
		}
		return post(ctx, client, "http://"+addr+"/ask", q)
	}
}

// addrOf is where a node serves.
func addrOf(id cluster.NodeID, st cluster.Status) string {
	if id == st.Node {
		return st.AdminAddr
	}
	for _, m := range st.Members {
		if m.Node == id {
			return m.AdminAddr
		}
	}
	return ""
}

// post sends a question to an URL.
func post(ctx context.Context, client *http.Client, url string, q question) (a answer, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return a, err // says what was done, and to whom
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
	case resp.StatusCode != http.StatusOK:
		err = errors.New(resp.Status + ": " + strings.TrimSpace(string(text)))
	default:
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return answer{}, fmt.Errorf("ask %s: %w", url, err)
	}
	return a, nil
}
