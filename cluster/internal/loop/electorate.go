package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
)

// VoterChange adds a voter or removes one.
type VoterChange struct {
	Add, Remove elector.NodeID // one of them is ""
}

// change is a VoterChange on its way. Only the driver may touch its fields, except for done.
type change struct {
	VoterChange

	asked elector.Time        // when the machine was; 0 if it was not
	waits string              // what is waited for
	done  chan answer[string] // has room for one
}

// errHandsOver says that this leader is to be removed, and hands over first to the voter that the
// answer names.
var errHandsOver = errors.New("hands over")

// change carries out a change of voters, if this node leads, and waits until it is committed. It
// returns what was done, and tells now and then what it waits for. When ctx ends it gives up what
// was not written.
func (l *Loop) change(
	ctx context.Context, e *Election, c VoterChange, told func(error),
) (string, error) {
	w := &change{VoterChange: c, done: make(chan answer[string], 1)}
	err := l.Do(ctx, func(d *Driver) error { return d.begin(e.g, w) })
	for err == nil {
		short, cancel := context.WithTimeout(ctx, shortWait)
		a, ended := await(short, l, w.done, e.Gone.Done())
		goesOn := short.Err() != nil && ctx.Err() == nil
		cancel()
		if ended == nil && errors.Is(a.err, errHandsOver) {
			to, err := l.Transfer(ctx, e, elector.NodeID(a.value))
			if err != nil {
				return "", fmt.Errorf("%w: leader %s is to be removed, and cannot hand over: %w",
					ErrRefused, l.Node, err)
			}
			return "", fmt.Errorf("%w: leader %s has handed over to %s, which is asked next",
				errWaiting, l.Node, to)
		} else if ended == nil {
			return a.value, a.err
		} else if !goesOn {
			l.later(func(d *Driver) { d.giveUp(e.g, w) })
			return "", fmt.Errorf("%w: %w", errWaiting, ended)
		}
		var waits string
		waits, err = ask(ctx, l, func(*Driver) (string, error) { return w.waits, nil })
		told(fmt.Errorf("%w: %s", errWaiting, waits))
	}
	return "", err
}

// begin begins a change of voters, unless another one is not written yet.
func (d *Driver) begin(g *group, w *change) error {
	if err := g.Ended(); err != nil {
		return err
	}
	now := g.machine.Record().Change
	if now != (elector.ChangeVoters{}) && now != d.input(w.VoterChange) {
		return fmt.Errorf("%w: another change of voters is under way", ErrRefused)
	}
	g.own().changes = append(g.changes, w)
	d.stepRequests(g)
	return nil
}

// giveUp ends a change that was not written.
func (d *Driver) giveUp(g *group, w *change) {
	if i := slices.Index(g.changes, w); i >= 0 {
		g.changes = slices.Delete(g.changes, i, i+1)
		if i == 0 && w.asked != 0 {
			d.step(g, elector.ChangeVoters{})
		}
	}
}

// nextChange answers the changes of voters that are over, one after the other. It returns the input
// that has the machine begin the next one, or end one.
func (d *Driver) nextChange(g *group) (elector.Input, bool) {
	for len(g.changes) > 0 {
		w := g.changes[0]
		if a, over := d.follow(g, w); over {
			w.done <- a
			g.changes = g.changes[1:]
			if g.machine.Record().Change != (elector.ChangeVoters{}) {
				return elector.ChangeVoters{}, true
			}
			continue
		}
		first := w.asked == 0
		if first {
			w.asked = max(d.Now(), 1)
		}
		return d.input(w.VoterChange), first
	}
	return nil, false
}

// needsNewcomer reports whether a voter that is being added will be needed for a quorum at once. If
// it lacked the newest value then, the lease could end before that has come: values wait, not long.
func (d *Driver) needsNewcomer(g *group) bool {
	if len(g.changes) == 0 || g.changes[0].Add == "" || g.changes[0].asked == 0 ||
		d.Now().Sub(g.changes[0].asked) > shortWait {
		return false
	}
	up, voters := 0, g.machine.Electorate()
	for _, id := range voters {
		if id == d.Node || d.up[id] != nil {
			up++
		}
	}
	return up < elector.Majority(len(voters)+1)
}

// follow says how a change ended, or notes what it waits for.
func (d *Driver) follow(g *group, w *change) (a answer[string], over bool) {
	now, err := d.judge(g, d.roster(g), w.VoterChange)
	st := g.machine.Record()
	switch why := g.machine.Publishable(); {
	case errors.Is(why, elector.ErrNotLeader):
		a.err = why
	case err != nil:
		a.err = err
	case now.handOver != "":
		a.value, a.err = string(now.handOver), errHandsOver
	case now.done && st.InSync && st.Accepted.Voters == st.Committed.Voters:
		a.value = now.text
	case now.done:
		w.waits = "waiting for the record to be committed"
		return a, false
	case w.asked != 0 && st.Change == (elector.ChangeVoters{}):
		a.err = fmt.Errorf("%w: the leader was elected anew", errWaiting)
	default:
		if w.waits = now.text; len(st.Behind) > 0 {
			w.waits += "; waiting for the record on " + words.List(st.Behind)
		}
		return a, false
	}
	return a, true
}

// input is a change as the machine gets it.
func (d *Driver) input(c VoterChange) elector.ChangeVoters {
	return elector.ChangeVoters{
		Add: elector.Voter{Node: c.Add, Identity: d.identity(c.Add)}, Remove: c.Remove,
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

// plan says what changes would do one after the other, or why one is refused.
func (d *Driver) plan(g *group, changes []VoterChange) (string, error) {
	if err := g.machine.Publishable(); errors.Is(err, elector.ErrNotLeader) {
		return "", err
	}
	voters, steps := d.roster(g), []string(nil)
	if err := possible(voters, changes); err != nil {
		return "", err
	}
	for _, c := range changes {
		now, err := d.judge(g, voters, c)
		if err != nil {
			return "", err
		}
		steps, voters = append(steps, now.text), c.apply(voters, elector.Identity{})
	}
	return strings.Join(steps, "\n"), nil
}

// possible returns why a voter cannot be removed or replaced by these changes as a whole.
func possible(voters elector.Roster, changes []VoterChange) error {
	var both VoterChange // the same name for a directory that is replaced
	for _, c := range changes {
		both.Add, both.Remove = both.Add+c.Add, both.Remove+c.Remove
	}
	_, there := voters.Find(both.Remove)
	_, taken := voters.Find(both.Add)
	switch {
	case both.Remove == "" || there && (!taken || both.Add == both.Remove):
		return nil
	case there:
		return fmt.Errorf("%w: %s is a voter already: remove %s, or name a node that is not a voter",
			ErrRefused, both.Add, both.Remove)
	case taken || both.Add == "":
		return fmt.Errorf("%w: %s is not one of the voters %s", ErrNoVoter, both.Remove, names(voters))
	}
	return fmt.Errorf("%w: %s is not one of the voters %s: add %s", ErrRefused, both.Remove,
		names(voters), both.Add)
}

// progress is what a change does.
type progress struct {
	done     bool           // nothing
	handOver elector.NodeID // this leader is to be removed: it hands over first, to that voter
	text     string         // a line for each step
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
	after := c.apply(voters, change.Add.Identity)
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
	does := "%s becomes a voter; the voters are then %s"
	if c.Remove != "" {
		does = "%s is removed; the voters are then %s"
	}
	now.text = fmt.Sprintf(does, c.Add+c.Remove, names(after))
	if c.Remove == d.Node {
		if now.handOver, err = d.successor(g, ""); err != nil {
			return refuse("leader %s must hand over first: %w", d.Node, err)
		}
		now.text = fmt.Sprintf("leader %s hands over to %s first\n%s", d.Node, now.handOver, now.text)
	} else if err := g.machine.Changeable(change); err != nil && voters == d.roster(g) {
		return refuse("%w", err)
	}
	return now, nil
}

// apply returns the voters after a change.
func (c *VoterChange) apply(voters elector.Roster, identity elector.Identity) elector.Roster {
	if c.Add != "" {
		voters = voters.With(elector.Voter{Node: c.Add, Identity: identity})
	}
	return voters.Without(c.Remove)
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
