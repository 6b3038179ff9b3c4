package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// askTimeout bounds a question to one node.
const askTimeout = 3 * time.Second

// remote is how commands reach running nodes.
type remote struct {
	addrs            []string
	tokenFile, token string
	figures          bool // ask for metrics too
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
	given  bool            // that address was given, not named by a node
	// figures are its metrics, if remote.figures; zero if they were not to be had.
	figures admin.Figures
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

// client returns a client for a node. The token goes to addresses that the operator
// named, and to none that a node named: whoever talks to the cluster could name his.
func (r *remote) client(a answerOf) *admin.Client {
	c := admin.NewClient(a.via)
	if a.given || slices.Contains(r.addrs, a.via) {
		c.UseToken(r.token)
	} else if r.token != "" {
		c.WithoutToken("it gets none, since only a node named this address: name it with --admin")
	}
	return c
}

// headStart is what each of the default addresses has before the next one is asked
// too: they may be of several clusters, and the first one is meant.
const headStart = 200 * time.Millisecond

// walk asks the addresses that were given and, as soon as an answer names them, the
// other members: all at the same time, so that whoever is dead or frozen holds up
// nobody. It hands each answer to heard as it comes, one at a time, and ends when
// heard has enough or nobody is left; what is still asked then is given up. Of the
// default addresses the first one that answers counts, unless all are wanted.
func (r *remote) walk(ctx context.Context, all bool, heard func(answerOf) (enough bool)) error {
	if err := r.login(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	all = all || !slices.Equal(r.addrs, defaultAsk)
	answers, over := make(chan answerOf), make(chan struct{})
	asked, pending := map[cluster.NodeID]bool{}, 0
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	defer cancel()
	ask := func(ctx context.Context, a answerOf, after time.Duration) {
		pending++
		wg.Go(func() {
			pause(ctx, after)
			r.ask(ctx, &a)
			select {
			case answers <- a:
			case <-over:
			}
		})
	}
	given, found := context.WithCancel(ctx)
	defer found()
	for i, addr := range r.addrs {
		if all {
			i = 0
		}
		ask(given, answerOf{via: addr, given: true}, time.Duration(i)*headStart)
	}
	for met := false; pending > 0; pending-- {
		a := <-answers
		if a.given && met && !all {
			continue // another default address
		}
		if a.Status != nil {
			met, asked[a.Node] = true, true
			if !all {
				found()
			}
			for _, m := range membersOf(*a.Status) {
				if !asked[m.Node] {
					asked[m.Node] = true
					ask(ctx, m, 0)
				}
			}
		}
		if heard(a) {
			return nil
		}
	}
	return nil
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// all is what every node of the cluster says: first one at an address that was given.
func (r *remote) all(ctx context.Context) ([]answerOf, error) {
	var answers, silent []answerOf
	err := r.walk(ctx, false, func(a answerOf) bool {
		if a.given && a.Status == nil {
			silent = append(silent, a)
		} else {
			answers = append(answers, a)
		}
		return false
	})
	if err == nil && len(answers) == 0 {
		err = nobodyAnswers("name one that runs with --admin", silent)
	}
	return once(answers), err
}

// nobodyAnswers is the error if none of the given addresses does.
func nobodyAnswers(advice string, silent []answerOf) error {
	if len(silent) == 0 {
		return errors.New("no node runs that could be asked")
	}
	text := "no node answers; " + advice + ":"
	for _, a := range silent {
		text += "\n" + a.Error
	}
	return errors.New(text)
}

// once leaves out a second answer of the same process, and the silence at one address
// of a node that answered at another.
func once(answers []answerOf) []answerOf {
	said := map[cluster.NodeID]string{}
	for _, a := range answers {
		if a.Status != nil {
			said[a.Node] = ""
		}
	}
	return slices.DeleteFunc(answers, func(a answerOf) bool {
		identity, known := said[a.Node]
		if a.Status == nil {
			return known
		}
		said[a.Node] = a.Status.Identity
		return identity == a.Status.Identity
	})
}

// membersOf are the other members that a node names, to be asked, or why they cannot be.
func membersOf(st cluster.Status) (all []answerOf) {
	for _, m := range st.Members {
		a := answerOf{Node: m.Node, Addr: admin.AddrOf(m), via: admin.AddrOf(m)}
		if a.via == "" {
			a.Error = unreachable(m)
		}
		all = append(all, a)
	}
	return all
}

// unreachable is why a member without an admin address has none.
func unreachable(m cluster.MemberStatus) string {
	if m.GossipAddr == "" {
		return "never seen"
	}
	return "it has no admin address: ask it at its socket, with --admin unix:PATH on its machine"
}

// ask lets the node at an address say what it is.
func (r *remote) ask(ctx context.Context, a *answerOf) {
	if a.via == "" {
		return // and Error says why
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := r.client(*a)
	defer client.Close()
	st, err := client.Status(ctx)
	switch {
	case err != nil:
		a.Error = err.Error()
		return
	case a.Node != "" && a.Node != st.Node:
		a.Error = fmt.Sprintf("%s: node %s answers there", a.via, st.Node)
		return
	}
	a.Node, a.Addr, a.Status, a.Error = st.Node, st.AdminAddr, &st, ""
	if r.figures {
		// A node of before there were metrics is examined without them.
		a.figures, _ = client.Figures(ctx)
	}
}

// leader finds the node that leads an election. It waits for nobody else.
func (r *remote) leader(ctx context.Context, group string) (answerOf, error) {
	var leader, first answerOf
	var silent []answerOf
	err := r.walk(ctx, false, func(a answerOf) bool {
		switch {
		case a.Status == nil:
			silent = append(silent, a)
		case groupIn(*a.Status, group).Leading:
			leader = a
		case first.Status == nil:
			first = a
		}
		return leader.Status != nil
	})
	switch {
	case err != nil || leader.Status != nil:
		return leader, err
	case first.Status == nil:
		return leader, nobodyAnswers("name one that runs with --admin", silent)
	}
	why := groupIn(*first.Status, group).Explanation
	if why == "" {
		return leader, usageError{fmt.Errorf("%s takes part in no election %q", first.Node, group)}
	}
	return leader, fmt.Errorf("no node leads now; %s says: %s", first.Node, why)
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
