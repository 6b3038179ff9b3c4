package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
)

// VoterChange adds a voter or removes one.
type VoterChange struct {
	Add, Remove elector.NodeID // one of them is ""
	DryRun      bool           // says what would happen, and what is wrong
	Assumed     []VoterChange  // by a dry run, to be done before
}

// progress is how far a change is.
type progress struct {
	done     bool
	handOver elector.NodeID // this leader is to be removed: it hands over first, to that voter
	text     string
}

// changeEvery is how often a leader looks how far a change is, besides when a record is committed.
const changeEvery = 20 * time.Millisecond

// change carries out a change of voters, if this node leads, and waits until it is committed. It
// returns what was done. When ctx ends it gives the change up, unless it was written.
func (l *Loop) change(ctx context.Context, e *Election, c VoterChange) (string, error) {
	for {
		newer := e.Recorded().Newer()
		now, err := ask(ctx, l, func(d *Driver) (progress, error) { return d.change(e.g, c) })
		switch {
		case err != nil:
			return "", err
		case now.done || c.DryRun:
			return now.text, nil
		case now.handOver != "":
			if _, err := l.Transfer(ctx, e, now.handOver); err != nil {
				return "", fmt.Errorf("%w: leader %s is to be removed, and cannot hand over: %w",
					ErrRefused, l.Node, err)
			}
			return "", fmt.Errorf("%w: %s has handed over to %s", errWaiting, l.Node, now.handOver)
		}
		select {
		case <-newer:
		case <-time.After(changeEvery):
		case <-ctx.Done():
			l.later(func(d *Driver) { d.giveUp(e.g, c) })
			return "", fmt.Errorf("%w: %s", errWaiting, now.text)
		}
	}
}

// change begins a change of voters, or says how far it is.
func (d *Driver) change(g *group, c VoterChange) (now progress, err error) {
	st, voters := g.machine.Record(), d.roster(g)
	if err := g.machine.Publishable(); errors.Is(err, elector.ErrNotLeader) {
		return now, err
	}
	settled := st.InSync && st.Accepted.LSN == st.Committed.LSN
	for _, before := range c.Assumed {
		if _, err := d.judge(g, voters, before); err != nil {
			return now, err
		}
		voters = before.apply(voters, elector.Identity{})
	}
	if now, err = d.judge(g, voters, c); now.done && !settled {
		now = progress{text: "waiting for the record to be committed"}
	}
	if err != nil || now.done || now.handOver != "" || c.DryRun {
		return now, err
	}
	if len(st.Behind) > 0 {
		now.text += "; waiting for the record on " + words.List(st.Behind)
	}
	if want := d.input(c); st.Change != want {
		d.step(g, want)
	}
	return now, nil
}

// input is a change as the machine gets it.
func (d *Driver) input(c VoterChange) elector.ChangeVoters {
	return elector.ChangeVoters{
		Add: elector.Voter{Node: c.Add, Identity: d.identity(c.Add)}, Remove: c.Remove,
	}
}

// apply returns the voters after a change.
func (c *VoterChange) apply(voters elector.Roster, identity elector.Identity) elector.Roster {
	if c.Add != "" {
		voters = voters.With(elector.Voter{Node: c.Add, Identity: identity})
	}
	return voters.Without(c.Remove)
}

// giveUp ends a change that was not written.
func (d *Driver) giveUp(g *group, c VoterChange) {
	if now := g.machine.Record().Change; now.Add.Node == c.Add && now.Remove == c.Remove {
		d.step(g, elector.ChangeVoters{})
	}
}

// roster is that of those who count for an election on this node, with their identities if it has a
// record.
func (d *Driver) roster(g *group) elector.Roster {
	if r := g.machine.Record().Accepted; r.LSN != (lsn.LSN{}) {
		return r.Voters
	}
	var voters []elector.Voter
	for _, id := range g.machine.Electorate() {
		voters = append(voters, elector.Voter{Node: id})
	}
	return elector.NewRoster(voters...)
}

// judge says what a change does to these voters, or why it is refused.
func (d *Driver) judge(g *group, voters elector.Roster, c VoterChange) (now progress, err error) {
	refuse := func(format string, args ...any) (progress, error) {
		return progress{}, fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
	}
	change := d.input(c)
	old, isVoter := voters.Find(c.Add + c.Remove)
	another := old.Identity != (elector.Identity{}) && change.Add.Identity != (elector.Identity{}) &&
		old.Identity != change.Add.Identity
	wrong := elector.NameProblem(c.Add + c.Remove)
	switch {
	case (c.Add == "") == (c.Remove == ""):
		return refuse("a change adds one voter or removes one, and names it")
	case wrong != "":
		return refuse("%q is no voter: its name is %s", c.Add+c.Remove, wrong)
	case c.Add != "" && isVoter && another:
		return refuse("%s is a voter with the data directory %s, and runs on %s: replace it",
			c.Add, old.Identity, change.Add.Identity)
	case c.Add != "" && isVoter:
		return progress{done: true, text: fmt.Sprintf("%s is a voter", c.Add)}, nil
	case slices.Contains(d.Lost, c.Add):
		return refuse("%s was declared lost in an emergency: readmit it first, on every node", c.Add)
	case c.Remove != "" && !isVoter:
		return progress{done: true, text: fmt.Sprintf("%s is no voter", c.Remove)}, nil
	}
	after := c.apply(voters, d.identity(c.Add))
	if len(after.Voters()) == 0 {
		return refuse("%s is the only voter: add another one first", c.Remove)
	}
	if linked, knows := d.calls.link(c.Add); c.Add != "" && !linked {
		return refuse("leader %s has no link to %s: start it, with an address to join", d.Node, c.Add)
	} else if c.Add != "" && !knows {
		return refuse("%s runs a build that knows no records: upgrade it", c.Add)
	}
	up := slices.DeleteFunc(after.Voters(), func(v elector.Voter) bool { return !d.connected(v) })
	if need := elector.Majority(len(after.Voters())); len(up) < need {
		return refuse("the voters would be %s; %d of them would be needed, and %d are connected to "+
			"leader %s: start the others, or add a voter first", names(after), need, len(up), d.Node)
	}
	if err := d.mayBegin(g); err != nil {
		return now, err
	}
	if c.Remove == d.Node {
		now.handOver, err = d.successor(g, "")
		if err != nil {
			return refuse("leader %s must hand over first: %w", d.Node, err)
		}
		now.text = fmt.Sprintf("leader %s hands over to %s first", d.Node, now.handOver)
		return now, nil
	}
	if err := g.machine.Changeable(change); err != nil && len(c.Assumed) == 0 {
		return refuse("%w", err)
	}
	if c.Add != "" {
		now.text = fmt.Sprintf("%s becomes a voter; the voters are then %s", c.Add, names(after))
	} else {
		now.text = fmt.Sprintf("%s is removed; the voters are then %s", c.Remove, names(after))
	}
	return now, nil
}

// names lists voters.
func names(voters elector.Roster) string {
	var all []elector.NodeID
	for _, v := range voters.Voters() {
		all = append(all, v.Node)
	}
	return words.List(all)
}

// connected reports whether a voter is this node, or there is a link to its data directory.
func (d *Driver) connected(v elector.Voter) bool {
	_, up := d.up[v.Node]
	return v.Node == d.Node ||
		up && (v.Identity == (elector.Identity{}) || v.Identity == d.identity(v.Node))
}
