package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/admin"
)

// askTimeout bounds a question to one node.
const askTimeout = 3 * time.Second

// remote is how commands reach running nodes.
type remote struct {
	addrs            []string
	tokenFile, token string
}

// tokenVariable names the token file to commands without the flag.
const tokenVariable = "BMQNODE_TOKEN_FILE"

func (r *remote) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&r.addrs, "admin", defaultAsk, "admin addresses, host:port or unix:PATH, of any nodes; the others are found through them")
	cmd.Flags().StringVar(&r.tokenFile, tokenFlag, "", "file with the nodes' token (default: what $"+tokenVariable+" names)")
}

// answerOf is what a node said of itself, or why it said nothing.
type answerOf struct {
	Node   cluster.NodeID  `json:"node"`
	Addr   string          `json:"admin_addr,omitempty"`
	Status *cluster.Status `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"`
	via    string          // the address at which it is asked, which may be a socket
}

// login reads the token, if there is to be one.
func (r *remote) login() (err error) {
	if r.tokenFile == "" {
		r.tokenFile = os.Getenv(tokenVariable)
	}
	if r.tokenFile == "" {
		return nil
	}
	if r.token, err = admin.ReadToken(r.tokenFile); err != nil {
		return usageError{err}
	}
	return nil
}

// client returns a client for a node.
func (r *remote) client(addr string) *admin.Client {
	c := admin.NewClient(addr)
	c.UseToken(r.token)
	return c
}

// all asks every node of the cluster: those whose addresses were given, then the
// members that the first of them to answer knows.
func (r *remote) all(ctx context.Context) ([]answerOf, error) {
	if err := r.login(); err != nil {
		return nil, err
	}
	first, via, err := r.any(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]answerOf, 1+len(first.Members))
	answers[0] = answerOf{Node: first.Node, Addr: first.AdminAddr, Status: &first, via: via}
	var wg sync.WaitGroup
	for i, m := range first.Members {
		wg.Go(func() { answers[i+1] = r.askMember(ctx, m) })
	}
	wg.Wait()
	return answers, nil
}

// any asks the given addresses in turn until one answers.
func (r *remote) any(ctx context.Context) (st cluster.Status, via string, err error) {
	if len(r.addrs) == 0 {
		return st, "", errors.New("no node runs that could be asked")
	}
	var errs []error
	for _, addr := range r.addrs {
		st, err := r.ask(ctx, addr)
		if err == nil {
			return st, addr, nil
		}
		errs = append(errs, err)
	}
	return st, "", fmt.Errorf("no node answers; name one that runs with --admin:\n%w", errors.Join(errs...))
}

func (r *remote) askMember(ctx context.Context, m cluster.MemberStatus) answerOf {
	a := answerOf{Node: m.Node, Addr: admin.AddrOf(m), via: admin.AddrOf(m)}
	if a.via == "" {
		a.Error = unreachable(m)
		return a
	}
	st, err := r.ask(ctx, a.via)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Status = &st
	return a
}

// unreachable is why a member without an admin address has none.
func unreachable(m cluster.MemberStatus) string {
	if m.GossipAddr == "" {
		return "never seen"
	}
	return "it has no admin address: ask it at its socket, with --admin unix:PATH on its machine"
}

func (r *remote) ask(ctx context.Context, addr string) (cluster.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := r.client(addr)
	defer client.Close()
	return client.Status(ctx)
}

// leader finds the node that leads an election.
func (r *remote) leader(ctx context.Context, group string) (answerOf, error) {
	answers, err := r.all(ctx)
	if err != nil {
		return answerOf{}, err
	}
	for _, a := range answers {
		if a.Status != nil && groupIn(*a.Status, group).Leading {
			return a, nil
		}
	}
	why := groupIn(*answers[0].Status, group).Explanation
	if why == "" {
		return answerOf{}, usageError{fmt.Errorf("%s takes part in no election %q", answers[0].Node, group)}
	}
	return answerOf{}, fmt.Errorf("no node leads now; %s says: %s", answers[0].Node, why)
}

// groupIn is a node's part in an election, or the zero value.
func groupIn(st cluster.Status, group string) cluster.GroupStatus {
	for _, g := range st.Groups {
		if g.Group == group {
			return g
		}
	}
	return cluster.GroupStatus{}
}
