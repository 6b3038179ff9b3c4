package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/admin"
)

// askTimeout bounds a question to one node.
const askTimeout = 3 * time.Second

// remote is how commands reach running nodes.
type remote struct{ addrs []string }

func (r *remote) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&r.addrs, "admin", defaultAsk, "admin addresses, host:port, of any nodes; the others are found through them")
}

// answerOf is what a node said of itself, or why it said nothing.
type answerOf struct {
	Node   cluster.NodeID  `json:"node"`
	Addr   string          `json:"admin_addr,omitempty"`
	Status *cluster.Status `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// all asks every node of the cluster: those whose addresses were given, then the
// members that the first of them to answer knows.
func (r *remote) all(ctx context.Context) ([]answerOf, error) {
	first, err := r.any(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]answerOf, 1+len(first.Members))
	answers[0] = answerOf{Node: first.Node, Addr: first.AdminAddr, Status: &first}
	var wg sync.WaitGroup
	for i, m := range first.Members {
		wg.Go(func() { answers[i+1] = askMember(ctx, m) })
	}
	wg.Wait()
	return answers, nil
}

// any asks the given addresses in turn until one answers.
func (r *remote) any(ctx context.Context) (cluster.Status, error) {
	if len(r.addrs) == 0 {
		return cluster.Status{}, errors.New("no node runs that could be asked")
	}
	var errs []error
	for _, addr := range r.addrs {
		st, err := ask(ctx, addr)
		if err == nil {
			return st, nil
		}
		errs = append(errs, err)
	}
	return cluster.Status{}, fmt.Errorf("no node answers; name one that runs with --admin:\n%w", errors.Join(errs...))
}

func askMember(ctx context.Context, m cluster.MemberStatus) answerOf {
	a := answerOf{Node: m.Node, Addr: m.AdminAddr}
	if m.AdminAddr == "" {
		a.Error = "never seen"
		return a
	}
	st, err := ask(ctx, m.AdminAddr)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Status = &st
	return a
}

func ask(ctx context.Context, addr string) (cluster.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := admin.NewClient(addr)
	defer client.Close()
	return client.Status(ctx)
}

// leader finds the address of the node that leads.
func (r *remote) leader(ctx context.Context) (answerOf, error) {
	answers, err := r.all(ctx)
	if err != nil {
		return answerOf{}, err
	}
	for _, a := range answers {
		if a.Status != nil && a.Status.Groups[0].Leading {
			return a, nil
		}
	}
	return answerOf{}, fmt.Errorf("no node leads now; %s says: %s", answers[0].Node, answers[0].Status.Groups[0].Explanation)
}
