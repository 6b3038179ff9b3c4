package loop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
)

// later does something after a random time.
func (s *stage) later(most time.Duration, do func()) {
	at := time.Now().Add(time.Duration(s.random.Int64N(int64(most))))
	s.agenda = append(s.agenda, task{at, do})
}

// calling is the context of a call.
type calling = context.Context

// one is one of some.
func one[T any](s *stage, of ...T) T { return of[s.random.IntN(len(of))] }

// events are what may happen to an actor, or between it and another one, which may be the same.
var events = []struct {
	name string
	do   func(s *stage, a, o *actor, election string)
}{
	{"slow", func(s *stage, a, o *actor, _ string) {
		w, slow := s.wires[string(a.id+o.id)], one(s, 0, 0, 5, 15, 30, 80, 300)
		s.change(func() { w.slow = time.Duration(slow) * ms })
	}},
	{"lossy", func(s *stage, a, o *actor, _ string) {
		w, lossy := s.wires[string(a.id+o.id)], one(s, 0, 0, 30, 100)
		s.change(func() { w.lossy = lossy })
	}},
	{"cut", func(s *stage, a, o *actor, _ string) {
		x, y := string(a.id), string(o.id)
		s.net.Filter(x, y, one(s, memnet.Drop, memnet.Drop, memnet.Reject))
		s.later(6*time.Second, func() { s.net.Filter(x, y, memnet.Pass) })
	}},
	{"reset", func(s *stage, a, o *actor, _ string) { a.mesh.Disconnect(o.id, "test") }},
	{"loses leaves", func(s *stage, a, _ *actor, _ string) {
		random, m := rand.New(rand.NewPCG(s.random.Uint64(), 0)), a.member
		drop := func(_ elector.NodeID, c pair.Change) bool { // the driver calls it
			return c.What == pair.Leave && random.IntN(2) == 0
		}
		m.lossy.dropChange.Store(&drop)
		s.later(time.Second, func() { m.lossy.dropChange.Store(nil) })
	}},
	{"no beats", func(s *stage, a, _ *actor, _ string) {
		m := a.member
		m.lossy.dropBeats.Store(true)
		s.later(time.Second, func() { m.lossy.dropBeats.Store(false) })
	}},
	{"held up", func(s *stage, a, _ *actor, _ string) {
		a.pace.hold.Store(s.random.Int64N(int64(one(s, 60*ms, 400*ms, 2*time.Second))))
	}},
	{"stopped", func(s *stage, a, _ *actor, _ string) {
		p := a.process
		p.Pause()
		s.later(one(s, 100*ms, time.Second), p.Resume)
	}},
	{"killed", func(s *stage, a, _ *actor, _ string) { s.away(a, true) }},
	{"ended", func(s *stage, a, _ *actor, _ string) { s.away(a, false) }},
	{"slow disk", func(s *stage, a, _ *actor, _ string) {
		most := one(s, 20*ms, 500*ms)
		s.change(func() { a.disk = most })
		s.later(3*time.Second, func() { s.change(func() { a.disk = 0 }) })
	}},
	{"steps down", func(s *stage, a, _ *actor, name string) {
		rest := one(s, 0, 0, time.Second)
		s.with(a, name, func(ctx calling, m *member, e *Election) { _ = m.StepDown(ctx, e, rest) })
	}},
	{"all resign", func(s *stage, _, _ *actor, name string) {
		for _, a := range s.actors {
			s.with(a, name, func(ctx calling, m *member, e *Election) { _ = m.StepDown(ctx, e, 0) })
		}
	}},
	{"transfers", func(s *stage, a, o *actor, name string) {
		s.with(a, name, func(ctx calling, m *member, e *Election) {
			_, _ = m.Transfer(ctx, e, o.id)
		})
	}},
	{"pauses", func(s *stage, a, _ *actor, name string) {
		long := one(s, 0, 300*ms, 3*time.Second)
		s.with(a, name, func(ctx calling, m *member, _ *Election) { _ = m.Pause(ctx, long) })
	}},
	{"unfit", func(s *stage, a, _ *actor, name string) {
		why, patience := one(s, "", "sick"), one(s, 0, 100*ms)
		s.with(a, name, func(_ calling, m *member, _ *Election) { m.SetHealth(why, patience) })
	}},
	{"closes", func(s *stage, a, _ *actor, name string) {
		m := a.member
		s.with(a, name, func(ctx calling, m *member, e *Election) { _ = m.CloseElection(ctx, e) })
		s.later(3*time.Second, func() {
			if a.up && a.member == m {
				s.open(a, name)
			}
		})
	}},
	{"changes voters", func(s *stage, a, o *actor, name string) {
		c := one(s, VoterChange{Add: o.id}, VoterChange{Remove: o.id})
		s.with(a, name, func(ctx calling, m *member, e *Election) {
			text, err := m.ChangeVoters(ctx, e, c, func(error) {})
			s.note("voters of %s: %v %s %v", name, c, text, err)
		})
	}},
	{"publishes", (*stage).publish},
	{"publishes again", (*stage).publish},
	{"reads", func(s *stage, _, _ *actor, name string) {
		for _, a := range s.actors {
			s.with(a, name, func(ctx calling, m *member, e *Election) { s.read(ctx, m, e) })
		}
	}},
}

// change changes what functions that others call go by.
func (s *stage) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// with does something with an actor's part in an election.
func (s *stage) with(a *actor, name string, do func(calling, *member, *Election)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, e := a.member, a.parts[name]; a.up && e != nil {
		s.call(func(ctx context.Context) { do(ctx, m, e) })
	}
}

// away ends an actor, and starts it some time later.
func (s *stage) away(a *actor, killed bool) {
	s.end(a, killed)
	s.later(5*time.Second, func() { s.start(a) })
}

// publish has the leader write a value, whoever that is.
func (s *stage) publish(a, _ *actor, name string) {
	value := noise(one(s, 10, 1000, 3*partSize))
	copy(value, fmt.Sprint(s.random.Uint32()))
	s.with(a, name, func(ctx calling, m *member, e *Election) {
		at, err := m.Publish(ctx, e, Write{Value: value})
		s.note("%s publishes: %s %v", name, at, err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && s.acked[name].LSN.Less(at) {
			s.acked[name] = elector.Record{LSN: at, Value: elector.Value{Hash: sha256.Sum256(value)}}
		}
	})
}

// read reads from the leader: what others had been told before is not lost.
func (s *stage) read(ctx context.Context, m *member, e *Election) {
	s.mu.Lock()
	acked := s.acked[e.Name]
	s.mu.Unlock()
	now, err := m.Read(ctx, e, func() error {
		if !e.Leading() {
			return elector.ErrNotLeader
		}
		return nil
	}, nil)
	if err == nil {
		s.keeps(&now.Record, acked)
	}
}

// keeps checks that a record is, or follows, one that was acknowledged.
func (s *stage) keeps(now *elector.Record, acked elector.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	another := now.Value.Hash != acked.Value.Hash && acked.LSN != (lsn.LSN{})
	if now.LSN.Less(acked.LSN) || another && !acked.LSN.Less(now.Value.LSN) {
		s.breaks("%v was acknowledged, and %v is there", acked, now)
	}
}
