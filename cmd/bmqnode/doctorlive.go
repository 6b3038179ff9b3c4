package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/admin"
	"github.com/bmqelect/bmqelect/internal/doctor"
)

// examineRunning asks the nodes at the given addresses, and whom they know. Addresses
// that nobody named need not answer.
func (o *doctorOptions) examineRunning(ctx context.Context, named bool) (doctor.Report, error) {
	answers := o.ask(ctx, strangersAt(o.remote.addrs))
	if !slices.ContainsFunc(answers, answered) {
		var all error = fmt.Errorf("no node answers; name one that runs with --admin, or examine a plan with --config")
		for _, a := range answers {
			all = fmt.Errorf("%w\n%s", all, a.Error)
		}
		return doctor.Report{}, all
	}
	if !named {
		answers = slices.DeleteFunc(answers, func(a doctor.Answer) bool { return a.Status == nil })
	}
	// Nodes that differ in their voters know of names that others do not.
	for more := unasked(answers); len(more) > 0; more = unasked(answers) {
		answers = append(answers, o.ask(ctx, more)...)
	}
	return doctor.Examine(slices.DeleteFunc(answers, func(a doctor.Answer) bool { return explained(a, answers) })), nil
}

func answered(a doctor.Answer) bool { return a.Status != nil }

// explained reports whether the silence at an address is told as that of a node.
func explained(a doctor.Answer, among []doctor.Answer) bool {
	return a.Node == "" && slices.ContainsFunc(among, func(b doctor.Answer) bool { return b.Node != "" && b.Addr == a.Addr })
}

func strangersAt(addrs []string) (to []doctor.Answer) {
	for _, addr := range addrs {
		to = append(to, doctor.Answer{Addr: addr})
	}
	return to
}

// unasked are the members that those who answered know, and that were not asked.
func unasked(answers []doctor.Answer) (to []doctor.Answer) {
	seen := map[cluster.NodeID]bool{}
	for _, a := range answers {
		seen[a.Node] = true
	}
	for _, a := range answers {
		if a.Status == nil {
			continue
		}
		for _, m := range a.Status.Members {
			if !seen[m.Node] && missed(m) {
				seen[m.Node] = true
				to = append(to, doctor.Answer{Node: m.Node, Addr: addrOf(m.Node, answers), Error: unreachable(m)})
			}
		}
	}
	return to
}

// missed leaves out an observer that has left: nobody misses it.
func missed(m cluster.MemberStatus) bool {
	return m.Voter || m.Gossip == "alive" || m.Link == "up"
}

// addrOf is the admin address of a member that somebody knows.
func addrOf(id cluster.NodeID, answers []doctor.Answer) string {
	for _, a := range answers {
		if a.Status == nil {
			continue
		}
		for _, m := range a.Status.Members {
			if addr := admin.AddrOf(m); m.Node == id && addr != "" {
				return addr
			}
		}
	}
	return ""
}

// ask fills in what each node says; those without an address keep their error.
func (o *doctorOptions) ask(ctx context.Context, to []doctor.Answer) []doctor.Answer {
	var wg sync.WaitGroup
	for i := range to {
		if to[i].Addr != "" {
			wg.Go(func() { o.askOne(ctx, &to[i]) })
		}
	}
	wg.Wait()
	return to
}

func (o *doctorOptions) askOne(ctx context.Context, a *doctor.Answer) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := o.remote.client(a.Addr)
	defer client.Close()
	st, err := client.Status(ctx)
	if err != nil {
		a.Error = err.Error()
		return
	}
	if a.Node == "" {
		a.Node = st.Node
	} else if a.Node != st.Node {
		a.Error = fmt.Sprintf("%s: node %s answers there", a.Addr, st.Node)
		return
	}
	a.Status, a.Error = &st, ""
	// A node of before there were metrics is examined without them.
	if f, err := client.Figures(ctx); err == nil {
		a.Figures, a.AheadLeast, a.AheadMost = f.Values, f.AheadLeast, f.AheadMost
	}
}
