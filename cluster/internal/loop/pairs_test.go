package loop

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh"
)

// numbered are the names of n elections.
func numbered(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("e%04d", i))
	}
	return all
}

// leader is the one member that leads an election.
func leader(t testing.TB, all []*member, election string) (leads *member) {
	t.Helper()
	for _, m := range all {
		e, err := m.Lookup(election, false)
		require.NoError(t, err)
		if e.Leading() {
			require.Nil(t, leads, "two lead %s", election)
			leads = m
		}
	}
	return leads
}

// Beats say that leaders live: elections send no heartbeats, and all know of the beats.
func TestElectionsThatAreQuietSendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(20)
		all := meet(t, memnet.New(), abc, elections...)
		time.Sleep(40 * time.Second)
		before := map[string]*member{}
		for _, e := range elections {
			before[e] = leader(t, all, e)
			require.NotNil(t, before[e], e)
		}
		for _, m := range all {
			m.beats.take()
		}
		for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
			for _, e := range elections {
				require.Equal(t, before[e], leader(t, all, e))
			}
		}
		for _, m := range all {
			require.Empty(t, m.beats.take(), "heartbeats to %s", m.id)
			for _, name := range elections {
				e, err := m.Lookup(name, false)
				require.NoError(t, err)
				s := m.Snapshot(e)
				require.Equal(t, before[name].id, s.Leader)
				if s.Role == elector.Follower {
					require.Less(t, s.Now.Sub(s.HeardAt), time.Second)
					require.Equal(t, s.Leader, s.PromisedTo)
				}
			}
		}
	})
}

// §16.1: a member that takes no part says so, and gets no heartbeats either. When it opens an
// election it hears of the leader.
func TestWhoTakesNoPartGetsNoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections, net := numbered(20), memnet.New()
		all := meet(t, net, abc, elections...)
		outside := startMember(t, net, clock.Process(), "d", abc)
		for _, m := range all {
			outside.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		time.Sleep(40 * time.Second)
		came := outside.Uninvited["no-prefix"].Load()
		require.Positive(t, came)
		time.Sleep(10 * time.Second)
		require.Equal(t, came, outside.Uninvited["no-prefix"].Load())
		old := leader(t, all, "e0000")
		require.NoError(t, old.CloseElection(t.Context(), lookup(t, old, "e0000")))
		time.Sleep(10 * time.Second) // the next leader has told it, too
		others := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m == old })
		next := leader(t, others, "e0000")
		for _, m := range []*member{outside, old} {
			e, err := m.Open("e0000", Setup{Elector: elector.Config{
				Self: m.id, Voters: abc, Timing: elector.Article(), NotCandidate: true,
			}})
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.Equal(t, next.id, m.Snapshot(e).Leader, m.id)
		}
		followed, mirrored := inSessions(append(all, outside))
		require.Equal(t, 3*(len(elections)+1), followed)
		require.Equal(t, followed, mirrored)
	})
}

// §16.1: beats speak for a leader to a member without a vote while that has the record. If the
// record is lost on its way, heartbeats remind that member to ask for it, and it finds out by them
// whether the leader hangs.
func TestWhoHasNoVoteIsRemindedOfTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections, net := numbered(20), memnet.New()
		all := meet(t, net, abc, elections...)
		outside := startWith(t, net, clock.Process(), "d", abc, elector.Article(), elections...)
		for _, m := range all {
			outside.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		time.Sleep(40 * time.Second)
		var deaf atomic.Bool
		drop := func(to elector.NodeID, _ netmesh.Note) bool { return to == "d" && deaf.Load() }
		for _, m := range all {
			m.lossy.drop.Store(&drop)
		}
		for i, lost := range []bool{false, true} {
			deaf.Store(lost)
			value := noise(partSize + i)
			for _, name := range elections {
				publish(t, all, name, value)
			}
			time.Sleep(20 * time.Second) // what was offered is given up
			outside.beats.take()
			time.Sleep(5 * time.Second)
			require.Equal(t, lost, len(outside.beats.take()) > 0)
			require.Equal(t, lost, !bytes.Equal(value, outside.shows("e0000")))
			deaf.Store(false)
			time.Sleep(5 * time.Second)
			for _, m := range append(all, outside) {
				m.beats.take()
				require.True(t, bytes.Equal(value, m.shows("e0000")), m.id)
			}
			time.Sleep(5 * time.Second)
			for _, m := range append(all, outside) {
				require.Empty(t, m.beats.take(), m.id)
			}
		}
		deaf.Store(true)
		publish(t, all, "e0000", noise(partSize+2))
		time.Sleep(10 * time.Second)
		for _, m := range all {
			m.pace.hold.Store(int64(time.Minute))
		}
		require.NotEmpty(t, outside.Snapshot(lookup(t, outside, "e0000")).Leader)
		time.Sleep(3 * time.Second)
		require.Empty(t, outside.Snapshot(lookup(t, outside, "e0000")).Leader)
	})
}

// lookup is the member's part in an election.
func lookup(t *testing.T, m *member, election string) *Election {
	e, err := m.Lookup(election, false)
	require.NoError(t, err)
	return e
}

// §16.4: a leader that still sends heartbeats, because a member has no part in the election, learns
// of each acknowledged beat when it comes, not with its next heartbeat. Guarded work would be told
// to stop otherwise, although the lease goes on.
func TestAcknowledgedBeatsCountAtOnceForALeaderThatIsNotQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections, net := numbered(20), memnet.New()
		all := meet(t, net, abc, elections...)
		outside := startMember(t, net, clock.Process(), "d", abc)
		drop := func(elector.NodeID, pair.Change) bool { return true }
		outside.lossy.dropChange.Store(&drop)
		for _, m := range all {
			outside.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		time.Sleep(40 * time.Second)
		timing := elector.Article()
		for range 4000 {
			time.Sleep(time.Millisecond)
			for _, name := range elections {
				m := leader(t, all, name)
				require.NotNil(t, m, name)
				e, err := m.Lookup(name, false)
				require.NoError(t, err)
				left := e.LeaseEnd().Sub(m.Now())
				require.Greater(t, left, timing.Lease-timing.HeartbeatBroadcast-10*time.Millisecond, name)
			}
		}
		for _, m := range all {
			require.NotEmpty(t, m.beats.take(), "heartbeats of %s", m.id)
		}
	})
}

// When a node dies, what it led is led again, and is as quiet as before.
func TestTheDeadAreReplacedAndThenItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(50)
		net := memnet.New()
		all := meet(t, net, abc, elections...)
		time.Sleep(40 * time.Second)
		dead := leader(t, all, elections[0])
		net.Kill(string(dead.id))
		alive := slices.DeleteFunc(slices.Clone(all), func(m *member) bool { return m == dead })
		time.Sleep(20 * time.Second)
		for _, m := range alive {
			m.beats.take()
		}
		time.Sleep(20 * time.Second)
		for _, m := range alive {
			require.Empty(t, m.beats.take(), "heartbeats to %s", m.id)
		}
		for _, e := range elections {
			require.NotNil(t, leader(t, alive, e), e)
		}
	})
}

// inSessions is how many elections are in followed sets, and how many in mirrors, over all members.
func inSessions(all []*member) (followed, mirrored int) {
	for _, m := range all {
		m.view(func(d *Driver) {
			for _, s := range d.sessions {
				followed, mirrored = followed+s.follows.Len(), mirrored+s.leads.Len()
			}
		})
	}
	return followed, mirrored
}

// §16.1, §16.2: each election is in the set of each follower of its leader. After a change is lost,
// §16.5, the set begins anew, and no leader loses anything by it.
func TestFollowedSetsAreWholeAgainAfterALoss(t *testing.T) {
	for _, what := range []pair.What{pair.Join, pair.Leave} {
		synctest.Test(t, func(t *testing.T) {
			elections := numbered(10)
			all := meet(t, memnet.New(), abc, elections...)
			time.Sleep(40 * time.Second)
			followed, mirrored := inSessions(all)
			require.Equal(t, 2*(len(elections)+1), followed)
			require.Equal(t, followed, mirrored)
			var lost atomic.Bool
			drop := func(_ elector.NodeID, c pair.Change) bool {
				return c.What == what && lost.CompareAndSwap(false, true)
			}
			for _, m := range all {
				m.lossy.dropChange.Store(&drop)
			}
			old := leader(t, all, elections[0])
			e, err := old.Lookup(elections[0], false)
			require.NoError(t, err)
			_, err = old.Transfer(t.Context(), e, "") // both followers leave and join
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
			require.True(t, lost.Load())
			followed, mirrored = inSessions(all)
			require.Equal(t, 2*(len(elections)+1), followed)
			require.Equal(t, followed, mirrored)
			next := leader(t, all, elections[0])
			require.NotNil(t, next)
			time.Sleep(time.Minute)
			require.Equal(t, next, leader(t, all, elections[0]))
		})
	}
}

// §16.3, §16.4, §16.6: without beats the followers suspect their leader, and its lease ends before
// their promises do. At no moment do two lead.
func TestWithoutBeatsALeaderIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(10)
		all := meet(t, memnet.New(), abc, elections...)
		time.Sleep(40 * time.Second)
		old := leader(t, all, elections[0])
		before := old.Snapshot(old.first(t)).Now
		old.lossy.dropBeats.Store(true)
		unled := false
		for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(time.Millisecond) {
			unled = unled || leader(t, all, elections[0]) == nil
		}
		require.True(t, unled)
		require.NotNil(t, leader(t, all, elections[0]))
		require.Positive(t, old.Snapshot(old.first(t)).Now-before)
	})
}

// §16.8: who follows what nobody leads is told, at once if the leadership has ended, and also if
// the leader's own books are wrong.
func TestWhoFollowsNobodyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := meet(t, memnet.New(), abc, numbered(3)...)
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "e0000")
		follower := all[(slices.Index(all, leads)+1)%3]
		var told atomic.Int64
		drop := func(to elector.NodeID, c pair.Change) bool {
			if c.What == pair.Disown && c.Group == "ghost" && to == follower.id {
				told.Add(1)
			}
			return false
		}
		leads.lossy.dropChange.Store(&drop)
		follower.view(func(d *Driver) { // it follows what its leader never led
			s := d.sessions[leads.id]
			c, _ := s.follows.Join("ghost", 7, false)
			d.Mesh.Change(s.peer, s.number, []pair.Change{c})
		})
		time.Sleep(10 * time.Second)
		require.Positive(t, told.Load(), "with a beat")
		follower.view(func(d *Driver) {
			require.False(t, d.sessions[leads.id].follows.Follows("ghost", 7))
		})
	})
}

// attempting reports whether an election tries to get a leader, or to let some members know it.
func (d *Driver) attempting(g *group, members ...elector.NodeID) bool {
	s := g.machine.State()
	untold := func(id elector.NodeID) bool {
		return id != d.Node && !d.sessions[id].tells(g, g.leadTerm)
	}
	return s.Role == elector.Candidate || s.Follower.Round.IsOpen() || s.Role == elector.Leader &&
		d.Now() < s.Leader.Since.Add(2*elector.Article().HeartbeatBroadcast) &&
		slices.ContainsFunc(members, untold)
}

// §16.10: of many elections without a leader few try to get one at a time.
func TestManyAttemptsWaitInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 6 * narrow
		elections := numbered(count)
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 120 * time.Millisecond }, nil)
		all := meet(t, net, abc, elections...)
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			for _, m := range all {
				m.view(func(d *Driver) {
					attempts := 0
					for _, g := range d.groups {
						if d.attempting(g, abc...) {
							attempts++
						}
					}
					require.LessOrEqual(t, attempts, narrow, "they are slow")
				})
			}
		}
		for _, e := range elections {
			require.NotNil(t, leader(t, all, e), e)
		}
		for _, m := range all { // all at the very same moment
			m.view(func(d *Driver) {
				for _, name := range elections {
					if g := d.groups[name]; g.leadTerm != 0 {
						d.step(g, elector.Resign{})
					}
				}
			})
		}
		time.Sleep(10 * time.Second)
		for _, e := range elections {
			require.NotNil(t, leader(t, all, e), e)
		}
	})
}

// Where beats speak for nobody, because a build knows no pairs, nobody waits for them: elections
// get their leaders as fast as their messages come. Few elections learn nothing about many.
func TestOlderBuildsDoNotHoldUpTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(10 * narrow)
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 5 * time.Millisecond }, nil)
		all := meet(t, net, abc, elections...)
		time.Sleep(40 * time.Second)
		again := func(names []string) (sizes int) {
			for _, m := range all {
				m.view(func(d *Driver) {
					d.atOnce.size = narrow
					for _, name := range names {
						if g := d.groups[name]; g.leadTerm != 0 {
							d.step(g, elector.Resign{})
						}
					}
				})
			}
			time.Sleep(400 * time.Millisecond)
			for _, m := range all {
				m.view(func(d *Driver) { sizes += d.atOnce.size })
			}
			return sizes
		}
		require.Equal(t, 3*narrow, again(elections[:20]))
		require.Greater(t, again(elections), 3*narrow)
		for _, m := range all {
			m.view(func(d *Driver) {
				for _, peer := range abc {
					d.closeSession(peer)
				}
			})
		}
		time.Sleep(10 * time.Second)
		again(elections)
		require.Len(t, terms(t, all...), len(elections)+1)
	})
}

// §16.10: a member hangs while its links stay up. Its elections get other leaders without a wait
// for its mirror. They do wait for that of the third member.
func TestWhoHangsDoesNotHoldUpTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections, timing := numbered(12*narrow), elector.Article()
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 75 * time.Millisecond }, nil)
		all := meet(t, net, abc, elections...)
		time.Sleep(40 * time.Second)
		all[0].pace.hold.Store(int64(time.Minute))
		began, led := time.Now(), 0
		for time.Since(began) < timing.Inactivity()+timing.MaxRandomWait+time.Second {
			time.Sleep(100 * time.Millisecond)
			for i, m := range all[1:] {
				m.view(func(d *Driver) {
					attempts := 0
					for _, g := range d.groups {
						if d.attempting(g, all[2-i].id) {
							attempts++
						}
					}
					require.LessOrEqual(t, attempts, narrow, "they are slow")
					if time.Since(began) > timing.Inactivity()+time.Second {
						require.LessOrEqual(t, len(d.attempts), attempts, "the next one waits for nothing")
					}
				})
			}
		}
		for _, name := range elections {
			if leader(t, all[1:], name) != nil {
				led++
			}
		}
		require.Equal(t, len(elections), led)
	})
}

// §16.5: a mirror that differs is found by its hash, and the set begins anew.
func TestAMirrorThatDiffersIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := meet(t, memnet.New(), abc, numbered(3)...)
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "e0000")
		follower := all[(slices.Index(all, leads)+1)%3]
		leads.view(func(d *Driver) {
			s := d.sessions[follower.id]
			at := s.leads.Beat(d.Now(), s.period, 0).Revision
			for i, c := range []pair.Change{{What: pair.Join, Term: 9}, {What: pair.Leave}} {
				c.Group, c.Revision = "phantom", at+uint64(i)+1
				require.True(t, s.leads.Read(c))
			}
		})
		time.Sleep(5 * time.Second)
		follower.view(func(d *Driver) { require.Positive(t, d.anomalies["beat-differs"].Count) })
		followed, mirrored := inSessions(all)
		require.Equal(t, 2*4, followed)
		require.Equal(t, followed, mirrored)
		require.Equal(t, leads, leader(t, all, "e0000"))
	})
}

// §16.5: a peer that follows very many elections empties its set. Its later acks extend no lease,
// also before the leaders have been told, and no leadership ends.
func TestAVeryLargeSetIsEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(18 * batch)
		all := meet(t, memnet.New(), abc, elections...)
		time.Sleep(40 * time.Second)
		leads := leader(t, all, elections[0])
		follower := all[(slices.Index(all, leads)+1)%3]
		term := leads.Snapshot(leads.first(t)).Term
		led, untold := 0, 0
		leads.view(func(d *Driver) {
			s := d.sessions[follower.id]
			led = d.led[d.groups[elections[0]].class]
			require.Greater(t, s.leads.Len(), 4*batch)
			beat := s.leads.Beat(d.Now(), s.period, 0)
			d.changed(s, pair.Change{What: pair.Empty, Revision: beat.Revision + 1})
			ends := map[*group]elector.Time{}
			for _, g := range d.sweep {
				if g.lease != nil {
					ends[g] = g.LeaseEnd()
				}
			}
			d.acked(s, pair.Ack{Sequence: beat.Sequence, SentAt: beat.SentAt, Revision: beat.Revision + 1})
			for g, end := range ends {
				untold++
				require.Equal(t, end, g.LeaseEnd())
			}
		})
		require.Positive(t, untold)
		follower.view(func(d *Driver) { d.beginAnew(d.sessions[leads.id]) })
		time.Sleep(20 * time.Second)
		leads.view(func(d *Driver) {
			require.Equal(t, led, d.led[d.groups[elections[0]].class])
		})
		require.Equal(t, term, leads.Snapshot(leads.first(t)).Term)
	})
}

// §16.6: the detector of the pair suspects a leader that is silent, in all elections that it
// carries. What else happens to an election meanwhile changes nothing, also when its promise has
// ended already. One that has left the set watches its leader itself.
func TestASilentLeaderIsSuspectedInAllElections(t *testing.T) {
	for name, meanwhile := range map[string]func(*Driver, *group){
		"nothing happens": func(*Driver, *group) {},
		"steps": func(d *Driver, g *group) {
			d.step(g, elector.Tick{})
			follows := g.machine.State().Follower.Leader != ""
			require.Equal(t, follows, g.session != nil, "it leaves when it stops to follow: §16.2")
		},
		"its vote changes": func(d *Driver, g *group) {
			g.observes = true
			d.step(g, elector.Tick{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { suspectSilence(t, meanwhile) })
		})
	}
}

func suspectSilence(t *testing.T, meanwhile func(*Driver, *group)) {
	elections := numbered(20)
	net := memnet.New()
	all := meet(t, net, abc, elections...)
	time.Sleep(40 * time.Second)
	dead := leader(t, all, elections[0])
	led := slices.DeleteFunc(elections, func(e string) bool { return leader(t, all, e) != dead })
	net.Host(string(dead.id)).Stop()
	defer net.Host(string(dead.id)).Continue()
	all = slices.DeleteFunc(all, func(m *member) bool { return m == dead })
	silence := elector.Article().Inactivity()
	for began := time.Now(); time.Since(began) < silence; time.Sleep(10 * time.Millisecond) {
		for _, m := range all {
			m.view(func(d *Driver) {
				for _, name := range led {
					meanwhile(d, d.groups[name])
				}
			})
		}
	}
	for _, m := range all {
		for _, name := range led {
			e, err := m.Lookup(name, false)
			require.NoError(t, err)
			require.NotEqual(t, dead.id, m.Snapshot(e).Leader, "%s on %s", name, m.id)
		}
	}
}

// §16.4: an ack that a driver reads after the lease has ended does not bring it back, although the
// beat was sent before. The driver is held up before the ack comes, or when it has taken the ack.
func TestAnAckThatIsReadLateKeepsNoLease(t *testing.T) {
	const held = 450 * time.Millisecond
	for name, hold := range map[string]func(leads *member){
		"before it comes": func(leads *member) { leads.view(func(*Driver) { time.Sleep(held) }) },
		"in hand": func(leads *member) {
			time.Sleep(15 * time.Millisecond) // it comes in 4 ms
			leads.pace.hold.Store(int64(held))
			time.Sleep(5 * time.Millisecond)
			require.Zero(t, leads.pace.hold.Load(), "the driver has taken it")
			time.Sleep(held)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := memnet.New()
				net.Delay(func(string, string) time.Duration { return 10 * time.Millisecond }, nil)
				all := meet(t, net, abc)
				time.Sleep(40 * time.Second)
				leads := leader(t, all, "first")
				term := leads.Snapshot(leads.first(t)).Term
				period := elector.Article().HeartbeatBroadcast
				next := func() time.Duration { // until the next beat
					now := time.Duration(leads.Now())
					return now.Truncate(period) + period - now
				}
				time.Sleep(next() + 100*time.Millisecond) // that beat is acknowledged
				leads.lossy.dropBeats.Store(true)
				time.Sleep(next() + 100*time.Millisecond)
				time.Sleep(next() - 100*time.Millisecond) // nor is it repeated
				leads.lossy.dropBeats.Store(false)
				time.Sleep(next() + time.Millisecond) // a second after the first one
				hold(leads)
				time.Sleep(time.Millisecond)
				s := leads.Snapshot(leads.first(t))
				require.True(t, s.Role != elector.Leader || s.Term > term, "%s of term %d", s.Role, s.Term)
			})
		})
	}
}

// §16.4: the same for a follower that says after the end of the lease that it follows, although its
// acks of beats count already.
func TestWhoJoinsLateKeepsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &passing{Clock: clock.Process()}
		all := meetWith(t, memnet.New(), c, abc, "e0000")
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "e0000")
		leads.view(func(d *Driver) {
			g := d.groups["e0000"]
			term, s := g.leadTerm, d.sessions[all[(slices.Index(all, leads)+1)%3].id]
			for _, s := range d.sessions {
				revision := s.leads.Beat(d.Now(), 0, 0).Revision + 1
				d.changed(s, pair.Change{What: pair.Leave, Group: g.Name, Revision: revision})
			}
			end := g.machine.Lease().End
			require.Nil(t, g.lease, "nobody is known to follow")
			c.ahead.Store(int64(end.Sub(d.Now()) / 2))
			d.awaken()
			b := s.leads.Beat(d.Now(), s.period, 0)
			d.acked(s, pair.Ack{Sequence: b.Sequence, SentAt: b.SentAt, Revision: b.Revision})
			require.Equal(t, term, g.leadTerm)
			c.ahead.Add(int64(end.Sub(d.Now())))
			d.awaken()
			d.changed(s, pair.Change{What: pair.Join, Group: g.Name, Term: term, Revision: b.Revision + 1})
			require.Zero(t, g.leadTerm)
			c.ahead.Store(0)
		})
	})
}

// §7.12: a driver that was held up puts each deadline off once, whatever comes meanwhile. One that
// is always late suspects a silent leader all the same.
func TestADriverThatIsAlwaysLateSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &passing{Clock: clock.Process()}
		all := meetWith(t, memnet.New(), c, abc, "e0000")
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "e0000")
		follower := all[(slices.Index(all, leads)+1)%3]
		follower.view(func(d *Driver) {
			g := d.groups["e0000"]
			d.closeSession(leads.id)
			d.step(g, elector.LinkUp{Peer: leads.id}) // it watches its leader itself
			follows := func() bool { return g.machine.State().Follower.Leader == leads.id }
			for n := 0; follows(); n++ {
				require.Less(t, n, 4, "late ticks")
				c.ahead.Add(int64(max(g.tick.At.Sub(d.Now()), 0) + 2*lateFrom))
				d.awaken()
				d.listenFirst()
				d.step(g, elector.Tick{})
			}
			c.ahead.Store(0)
		})
	})
}

// passing is a clock that a test moves on.
type passing struct {
	clock.Clock

	ahead atomic.Int64
}

func (c *passing) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

// The first election begins, as all others, at the time of the clock: it waits to discover a leader
// (§3.2), and supports nobody before its promises of before a crash have ended (§3.1).
func TestTheFirstElectionWaitsAtItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &passing{Clock: clock.Process()}
		c.ahead.Store(int64(time.Hour))
		a := meetWith(t, memnet.New(), c, abc)[0]
		s, timing := a.Snapshot(a.first(t)), elector.Article()
		require.InDelta(t, timing.InitialWait, s.StandAt.Sub(a.Now()), float64(time.Second))
		require.InDelta(t, timing.Promise(), s.EmbargoEnd.Sub(a.Now()), float64(time.Second))
	})
}
