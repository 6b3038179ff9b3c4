// Package member is the base of the laboratory's algorithms: one member's place among the
// others, its links, its timers, its disk, what it believes, and the step that it takes.
//
// An algorithm is a struct that embeds *Member and has Receive and Tick; Maker makes a
// machine of what begins it:
//
//	var Example = algorithm.Algorithm{Name: "example", New: member.Maker(begin)}
//
//	type Beat struct{ Term lsn.Term } // a message: its text is "Beat term=3"
//
//	type rules struct {
//		*member.Member
//		beat, silent member.Timer
//	}
//
//	func begin(m *member.Member) member.Rules {
//		r := &rules{Member: m}
//		m.Term, _ = m.Disk.(lsn.Term)
//		r.silent = m.After(m.Timing.Inactivity() + m.Draw(m.Timing.MaxRandomWait))
//		return r
//	}
//
//	func (r *rules) Receive(from int, msg algorithm.Message) {
//		if msg, ok := msg.(Beat); ok && msg.Term >= r.Term {
//			r.Term, r.silent = msg.Term, r.After(r.Timing.Inactivity())
//			r.Become(elector.Follower, from, "Beat")
//		}
//	}
//
//	func (r *rules) Tick() algorithm.Time {
//		if r.Due(&r.silent) {
//			r.Term, r.beat = r.Term+1, r.After(0)
//			r.Become(elector.Leader, r.Self, "silence")
//		}
//		if r.Due(&r.beat) {
//			r.beat = r.After(r.Timing.HeartbeatBroadcast)
//			r.Hold(member.All, Beat{r.Term}) // leaves when the term is durable
//		}
//		r.Save(r.Term)
//		return member.Earliest(r.beat, r.silent)
//	}
//
// Members are known by rank, their place in Config.Order; Self is the member's own. Sets of
// them, such as votes, are Sets, and Quorum says whether one is enough. Everything of a step
// happens at Now. Tick ends each step, whatever its input was; rules that act on the clock
// only when they are asked to do so by Input.
//
// What a member would answer is in Role, Leader and Term, which Become sets; rules whose
// answer follows from other state have a View of their own. In the same way rules override
// Input, for what is neither a message nor the start, and Lease.
package member
