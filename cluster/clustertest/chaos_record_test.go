package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// account is what the processes of a world did with the record of the default election. In JSON
// it is a history that TestAHistoryThatWasKept of tests/kerneltest judges by porcupine.
type account struct {
	Records []entry
	newest  lsn.LSN // of the values that are committed for certain
}

// entry is one act: see tests/kerneltest.
type entry struct {
	Node, Kind, Value, Base, Outcome string
	Process                          int
	At, From, To                     time.Duration
	First, Last                      lsn.LSN
}

// kept notes an act.
func (j *judge) kept(p *process, e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.Killed() {
		return // nobody has heard of it
	}
	e.Node, e.Process, e.At = string(p.m.id), p.m.started, time.Since(j.began)
	j.account.Records = append(j.account.Records, e)
}

// fresh checks a value that was read or written by an act that began when before was the newest
// that was known to be committed.
func (j *judge) fresh(p *process, what string, before, at lsn.LSN) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if at.Less(before) && !p.Killed() {
		j.breaksLocked("the newest record", "%s: %s of %s, after %s was committed", p.name, what, at,
			before)
	}
	if j.account.newest.Less(at) && !p.Killed() {
		j.account.newest = at
	}
}

// known is the newest value that is committed for certain.
func (j *judge) known() lsn.LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.account.newest
}

// publishAll publishes values until there are no more faults, and tells which versions the process
// shows.
func (p *process) publishAll() {
	go p.showAll()
	dice := newDice(p.w.schedule.seed, p.name+" publishes")
	for i := 0; p.isUp() && !p.Killed() && p.node.Err() == nil; i++ {
		select {
		case <-p.w.calm:
			return
		case <-p.Life().Done():
			return
		case <-time.After(time.Millisecond + dice.UpTo(2*time.Second)):
			p.Wait()
			p.publish(fmt.Sprintf("%s.%d", p.name, i), dice.Below(3) == 0)
		}
	}
}

// publish publishes a value, if the present one is what this process knows, or in any case.
func (p *process) publish(value string, always bool) {
	j, o := p.w.judge, cluster.PublishOptions{}
	e := entry{Kind: "publishes", Value: value, Base: "*", From: time.Since(j.began)}
	if !always {
		seen := p.node.Default().Record()
		e.Base, o.IfMatch = string(seen.Value), &seen.ValueLSN
	}
	before := j.known()
	j.kept(p, e)
	ctx, cancel := context.WithTimeout(p.Life(), 3*time.Second)
	defer cancel()
	at, err := p.node.Default().Publish(ctx, []byte(value), o)
	p.Wait()
	e.Kind, e.To = "published", time.Since(j.began)
	switch {
	case err == nil:
		e.Outcome = "committed"
		j.fresh(p, "Publish", before, at)
	case errors.Is(err, cluster.ErrConflict):
		e.Outcome = "conflict"
	case !errors.Is(err, cluster.ErrUnknown):
		e.Outcome = "refused"
	}
	j.kept(p, e)
	j.note("%s publishes %s instead of %s: %s %v", p.name, value, e.Base, at, err)
}

// readRecord reads the record as the leader.
func (p *process) readRecord(l *cluster.Leadership) {
	j := p.w.judge
	e, before := entry{Kind: "as leader", From: time.Since(j.began)}, j.known()
	r, err := l.Record(l.Context())
	p.Wait()
	if err != nil {
		return
	}
	j.fresh(p, "the leader's Record", before, r.LSN)
	e.To, e.First, e.Last, e.Value = time.Since(j.began), r.ValueLSN, r.LSN, string(r.Value)
	j.kept(p, e)
}

// showAll tells which versions the process shows. They never become older.
func (p *process) showAll() {
	var newest lsn.LSN
	for r := range p.node.Default().Records(p.Life()) {
		p.Wait()
		if r.LSN.Less(newest) && !p.Killed() {
			p.w.judge.breaks("a node shows no older record", "%s: %s after %s", p.name, r.LSN, newest)
		}
		newest = r.LSN
		p.w.judge.kept(p, entry{Kind: "shows", First: r.ValueLSN, Last: r.LSN, Value: string(r.Value)})
	}
}

// turn makes a voter an observer, unless it is the last, or a voter again. Another node is asked.
func (m *supervised) turn(time.Duration) {
	i := slices.IndexFunc(m.w.members, func(o *supervised) bool {
		_, ok := o.status()
		return ok && o != m
	})
	if i < 0 || !m.w.keeps || m.w.wiped == m {
		return
	}
	asked := m.w.members[i]
	p := asked.process
	asked.call(func(ctx context.Context, e *cluster.Election) error {
		voters := e.Record().Voters
		is := func(v cluster.Voter) bool { return v.Node == m.id }
		change, what := p.node.AddVoter, "added"
		switch {
		case slices.ContainsFunc(voters, is) && len(voters) > 1:
			change, what = p.node.RemoveVoter, "removed"
		case len(voters) == 0:
			return nil
		}
		err := change(ctx, m.id, cluster.VoterOptions{})
		m.w.judge.note("%s is %s as a voter: %v", m.id, what, err)
		return err
	})
}

// wipe lets a machine and its disk be lost, and another one come in its place. That is the rule for
// elections with a record, which all voters have: one disk at a time.
func (m *supervised) wipe(span time.Duration) {
	w := m.w
	leader := w.leader()
	if leader == nil || leader == m || w.wiped != nil || !w.keeps || !w.whole() ||
		len(w.elections) > 1 {
		return
	}
	st, _ := leader.status()
	r := st.Groups[0].Record
	if r == nil || len(r.Voters) < 3 || !r.InSync || len(r.Behind) > 0 || r.Change != "" ||
		!slices.ContainsFunc(r.Voters, func(v cluster.Voter) bool { return v.Node == m.id }) ||
		slices.ContainsFunc(r.Voters, func(v cluster.Voter) bool { return v.Identity == "" }) {
		return
	}
	w.judge.note("the disk of %s is lost", m.id)
	m.kill(span)
	w.statement.wiped(m)
	w.wiped, m.disk = m, newDisk(w.t.TempDir())
	w.at(time.Second, m.replace)
}

// replace makes a node on a new disk a voter again, however often that has to be tried.
func (m *supervised) replace() {
	own, ok := m.status()
	for _, other := range m.w.members {
		st, up := other.status()
		if !ok || !up || other == m {
			continue
		}
		p := other.process
		other.call(func(ctx context.Context, _ *cluster.Election) error {
			return p.node.Forget(ctx, m.id)
		})
		is := cluster.Voter{Node: m.id, Identity: own.Identity}
		if r := st.Groups[0].Record; st.Groups[0].Leading && r != nil && r.InSync {
			if slices.Contains(p.node.Default().Record().Voters, is) {
				m.w.judge.note("%s is a voter again", m.id)
				m.w.wiped = nil
				return
			}
			other.call(func(ctx context.Context, _ *cluster.Election) error {
				return p.node.ReplaceVoter(ctx, m.id, m.id, cluster.VoterOptions{})
			})
		}
	}
	m.w.at(time.Second, m.replace)
}

// keep writes the account to a file of the directory that CHAOS_HISTORIES names, if any.
func (w *world) keep() {
	dir := os.Getenv("CHAOS_HISTORIES")
	if dir == "" || !w.keeps {
		return
	}
	text, err := json.Marshal(w.judge.account)
	require.NoError(w.t, err)
	file := filepath.Join(dir, fmt.Sprintf("%d.json", w.schedule.seed))
	require.NoError(w.t, os.WriteFile(file, text, 0o600))
}
