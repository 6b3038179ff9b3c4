package main

import (
	"context"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
)

// examineRunning asks the nodes at the given addresses, and whom they know. Addresses
// that nobody named need not answer.
func (o *doctorOptions) examineRunning(ctx context.Context, named bool) (doctor.Report, error) {
	var all []answerOf
	o.remote.figures = true
	if err := o.remote.walk(ctx, true, func(a answerOf) bool {
		all = append(all, a)
		return false
	}); err != nil {
		return doctor.Report{}, err
	}
	if !slices.ContainsFunc(all, func(a answerOf) bool { return a.Status != nil }) {
		return doctor.Report{}, nobodyAnswers("name one that runs with --admin, or examine a plan with --config", all)
	}
	var answers []doctor.Answer
	for _, a := range all {
		switch {
		case a.Status == nil && a.given && (!named || askedAsMember(a, all)):
		case a.Status == nil && !a.given && !isMissed(a.Node, all) && !(named && slices.Contains(o.remote.addrs, a.via)):
		default:
			answers = append(answers, asAnswer(a))
		}
	}
	return doctor.Examine(answers), nil
}

// asAnswer is what the doctor wants to know of an answer.
func asAnswer(a answerOf) doctor.Answer {
	return doctor.Answer{
		Node: a.Node, Addr: a.via, Status: a.Status, Error: a.Error,
		Figures: a.figures.Values, AheadLeast: a.figures.AheadLeast, AheadMost: a.figures.AheadMost,
	}
}

// askedAsMember reports whether the silence at an address is told as that of a node.
func askedAsMember(silent answerOf, among []answerOf) bool {
	return slices.ContainsFunc(among, func(a answerOf) bool { return a.Node != "" && a.via == silent.via })
}

// isMissed leaves out an observer that has left, and a node that answered at another
// address than the one that others know.
func isMissed(id cluster.NodeID, among []answerOf) bool {
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
