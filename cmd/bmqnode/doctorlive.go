package main

import (
	"context"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// examineRunning asks the nodes at the given addresses, and whom they know. Addresses
// that nobody named need not answer.
func (o *doctorOptions) examineRunning(ctx context.Context, named bool) (doctor.Report, error) {
	var all []remote.Answer
	o.remote.Figures = true
	if err := o.remote.Walk(ctx, true, func(a remote.Answer) bool {
		all = append(all, a)
		return false
	}); err != nil {
		return doctor.Report{}, err
	}
	if !slices.ContainsFunc(all, func(a remote.Answer) bool { return a.Status != nil }) {
		return doctor.Report{}, remote.NoAnswer(all)
	}
	var answers []doctor.Answer
	for _, a := range all {
		switch {
		case a.Status == nil && a.Given && (!named || askedAsMember(a, all)):
		case a.Status == nil && !a.Given && !isMissed(a.Node, all) && !(named && slices.Contains(o.remote.Addrs, a.Via)):
		default:
			answers = append(answers, asAnswer(a))
		}
	}
	return doctor.Examine(answers), nil
}

// asAnswer is what the doctor wants to know of an answer.
func asAnswer(a remote.Answer) doctor.Answer {
	return doctor.Answer{
		Node: a.Node, Addr: a.Via, Status: a.Status, Error: a.Error,
		Figures: a.Figures.Values, AheadLeast: a.Figures.AheadLeast, AheadMost: a.Figures.AheadMost,
	}
}

// askedAsMember reports whether the silence at an address is told as that of a node.
func askedAsMember(silent remote.Answer, among []remote.Answer) bool {
	return slices.ContainsFunc(among, func(a remote.Answer) bool { return a.Node != "" && a.Via == silent.Via })
}

// isMissed leaves out an observer that has left, and a node that answered at another
// address than the one that others know.
func isMissed(id cluster.NodeID, among []remote.Answer) bool {
	missed := false
	for _, a := range among {
		if a.Status == nil {
			continue
		}
		if a.Node == id {
			return false
		}
		for _, m := range a.Status.Members {
			missed = missed || m.Node == id && (m.Voter || m.Gossip == "alive" || m.Link == "up")
		}
	}
	return missed
}
