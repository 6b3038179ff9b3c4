package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// The kinds of records about the record of the default election. Values are named by the text
// before the first space; no two are equal.
const (
	publishes = "publishes" // Value is published from From on, if the value is Base
	published = "published" // by To: Outcome is the answer
	asLeader  = "as leader" // the leader's Record was Value, of First, at an instant from From to To
	shows     = "shows"     // the node's newest record is Last, with Value of First
)

// The answers to Publish. Without one it is not known whether the value was written.
const (
	committed = "committed"
	conflict  = "conflict" // another value than Base was there
	refused   = "refused"  // the value was not written, for another reason
)

// anyValue is a Base that every value matches.
const anyValue = "*"

// publishAll publishes values from this node, with and without a condition, until it ends. Some
// are large.
func (s *speaker) publishAll(n *cluster.Node) {
	e, boot := n.Default(), int(n.Status().Boot)
	go func() {
		for r := range e.Records(context.Background()) {
			s.say(record{Kind: shows, First: r.ValueLSN, Last: r.LSN, Value: nameOf(r.Value), Process: boot})
		}
	}()
	for i := 0; n.Err() == nil; i++ {
		time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		r := record{Value: fmt.Sprintf("%s.%d.%d", s.cfg.Config.Node, boot, i), Base: anyValue}
		o := cluster.PublishOptions{}
		if rand.IntN(3) > 0 {
			seen := e.Record()
			r.Base, o.IfMatch = nameOf(seen.Value), &seen.ValueLSN
		}
		value := r.Value + " "
		if rand.IntN(20) == 0 {
			value += strings.Repeat("x", rand.IntN(cluster.MaxValue/4))
		}
		r.Kind, r.From = publishes, now()
		s.say(r)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := e.Publish(ctx, []byte(value), o)
		cancel()
		r.Kind, r.To = published, now()
		switch {
		case err == nil:
			r.Outcome = committed
		case errors.Is(err, cluster.ErrConflict):
			r.Outcome = conflict
		case !errors.Is(err, cluster.ErrUnknown):
			r.Outcome = refused
		}
		s.say(r)
	}
}

// readRecord reads the record as the leader again and again.
func (s *speaker) readRecord(l *cluster.Leadership) {
	for l.Context().Err() == nil {
		r := record{Kind: asLeader, From: now()}
		kept, err := l.Record(l.Context())
		if r.To = now(); err == nil {
			r.First, r.Last, r.Value = kept.ValueLSN, kept.LSN, nameOf(kept.Value)
			s.say(r)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// nameOf returns the name of a value.
func nameOf(value []byte) string {
	name, _, _ := strings.Cut(string(value), " ")
	return name
}

// turn removes a voter, unless fewer than three would be left, or adds it again.
func (s *speaker) turn(n *cluster.Node, id cluster.NodeID) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	voters := n.Default().Record().Voters
	switch is := func(v cluster.Voter) bool { return v.Node == id }; {
	case !slices.ContainsFunc(voters, is):
		_ = n.AddVoter(ctx, id, cluster.VoterOptions{})
	case len(voters) > 3:
		_ = n.RemoveVoter(ctx, id, cluster.VoterOptions{})
	}
}
