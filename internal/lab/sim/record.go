package sim

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Ask is what an application or an operator asks of the election's record: to write a value, or to
// add and remove voters. The node that is asked tries again until it is done.
type Ask struct {
	// Via is the node that is asked; it forwards to the leader that it follows. "" is the leader.
	Via   elector.NodeID
	Value string // to publish, if neither of the following is set
	// Add and Remove are a replacement if both are set: the new voter comes first if the old one is
	// connected, and last if not. They are the same for a machine with a new disk.
	Add, Remove []elector.NodeID
}

// A node that is asked looks every askAgain whether it is done, and gives up after AskFor.
const (
	askAgain = 20 * time.Millisecond
	AskFor   = 10 * time.Second
)

// ask is an Ask under way.
type ask struct {
	Ask
	until time.Duration
	begun bool
	left  []elector.ChangeVoters // in their order
	wrote elector.Value          // with the LSN under which it was written
	done  func(error)
}

// ValueOf is the value that stands for a text.
func ValueOf(text string) elector.Value {
	return elector.Value{Size: uint32(len(text)), Hash: sha256.Sum256([]byte(text))}
}

// Ask asks a node. Done is called once, with nil when it is done, or with the error that says why
// it was refused, or what it waited for until it was given up.
func (s *Sim) Ask(what Ask, done func(error)) error {
	s.try(&ask{Ask: what, until: s.now + AskFor, done: done})
	return s.err
}

// try goes on with an ask.
func (s *Sim) try(a *ask) {
	leader, err := s.leaderFor(a.Via)
	switch {
	case err != nil:
	case a.Add == nil && a.Remove == nil:
		err = s.publish(leader, a)
	default:
		err = s.change(leader, a)
	}
	var wait waitError
	again := errors.As(err, &wait) || errors.Is(err, elector.ErrWriting) ||
		errors.Is(err, elector.ErrNotInSync) || errors.Is(err, elector.ErrNotLeader)
	switch {
	case s.err != nil:
	case again && s.now < a.until:
		s.queue.at(s.now+askAgain, func() { s.try(a) })
	case again:
		a.done(fmt.Errorf("not done within %s: %w", AskFor, err))
	default:
		a.done(err)
	}
}

// waitError is what an ask waits for.
type waitError string

func (e waitError) Error() string { return string(e) }

const errAgain = waitError("a quorum has not stored it")

// leaderFor finds the leader for a node that is asked.
func (s *Sim) leaderFor(via elector.NodeID) (*node, error) {
	n := s.byName[via]
	for _, l := range s.nodes {
		if via == "" && s.leads(l) {
			n = l
		}
	}
	switch {
	case n == nil:
		return nil, waitError("nobody leads")
	case !n.awake():
		return nil, waitError(string(n.id) + " does not run")
	}
	leader := s.byName[n.machine.View().Leader]
	if leader == nil || leader != n && !(n.ends(leader).up && leader.awake()) {
		return nil, waitError(string(n.id) + " knows no leader")
	}
	return leader, nil
}

// publish writes the value, or looks whether it is committed.
func (s *Sim) publish(leader *node, a *ask) error {
	if a.wrote == (elector.Value{}) {
		if err := leader.elector.Publishable(); err != nil {
			return err
		}
		s.tell(leader, elector.Publish{Value: ValueOf(a.Value)})
		a.wrote = leader.elector.Record().Accepted.Value // none in the first record
		return errAgain
	}
	switch st := leader.elector.Record(); {
	case st.Committed.Value == a.wrote:
		return nil
	case st.InSync && st.Accepted == st.Committed:
		return errors.New("its leader was replaced, and the next one does not have it")
	}
	return errAgain
}

// tell hands a leader what it is asked for.
func (s *Sim) tell(n *node, in elector.Input) {
	s.observe(Event{Kind: EventAsked, Node: n.id, Detail: in})
	s.step(n, in)
}

// change goes on with a change of voters.
func (s *Sim) change(leader *node, a *ask) error {
	if !a.begun {
		a.begun = true
		a.left = s.changes(leader, a)
	}
	for len(a.left) > 0 {
		c, st := &a.left[0], leader.elector.Record()
		if to := s.byName[c.Add.Node]; to != nil && to != leader && leader.ends(to).up {
			c.Add.Identity = to.identity()
		}
		if is(st.Committed, *c) {
			a.left = a.left[1:]
			continue
		}
		if is(st.Accepted, *c) || st.Change == *c {
			return errAgain
		}
		if err := leader.elector.Changeable(*c); c.Remove != leader.id || err == nil {
			if err != nil {
				return err
			}
			s.tell(leader, *c)
			return errAgain
		}
		if to := leader.elector.BestSuccessor(); to != "" { // the successor removes it
			s.tell(leader, elector.Transfer{To: to})
		}
		return errAgain
	}
	return nil
}

// changes are the steps of a change of voters.
func (s *Sim) changes(leader *node, a *ask) (steps []elector.ChangeVoters) {
	for _, id := range a.Remove {
		steps = append(steps, elector.ChangeVoters{Remove: id})
	}
	for _, id := range a.Add {
		add := elector.ChangeVoters{Add: elector.Voter{Node: id}}
		lives := func(id elector.NodeID) bool {
			return s.byName[id] == leader || leader.ends(s.byName[id]).up
		}
		if !slices.Contains(a.Remove, id) && slices.ContainsFunc(a.Remove, lives) {
			steps = slices.Insert(steps, 0, add)
		} else {
			steps = append(steps, add)
		}
	}
	return steps
}

// is reports whether a record has the voters that a change wants.
func is(r elector.Record, c elector.ChangeVoters) bool {
	_, there := r.Voters.Find(c.Remove)
	v, added := r.Voters.Find(c.Add.Node)
	if c.Remove != "" {
		return !there && r.Voters != (elector.Roster{})
	}
	return added && v == c.Add
}
