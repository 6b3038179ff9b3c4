package elector_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
)

// cast silently drives a new machine into the role that "as" names, in the term
// that "term" names, with all links up, and shows its status then, at 5s.
// Without "as" the machine stays DORMANT.
func (s *script) cast() string {
	if s.role == "" {
		return ""
	}
	slow := s.slowDisk
	s.slowDisk = false
	switch s.role {
	case "idle":
		s.boot(s.term0)
		s.play("5s")
	case "follower":
		leader := s.boot(s.term0 - 1)[0]
		record := ""
		if s.record0 != nil {
			record = fmt.Sprintf("record=%d.1", s.term0)
		}
		s.play("5s %s: LeaderHeartbeat term=%d lsn=%d.0 seq=1 sent=90s %s", leader, s.term0, s.term0,
			record)
	case "candidate":
		s.elect(elector.Candidate)
	case "leader":
		for _, id := range s.elect(elector.Leader) {
			s.play("5s %s: ack", id)
		}
	default:
		s.d.Fatalf(s.t, "no machine begins as %q", s.role)
	}
	s.slowDisk, s.random = slow, 50
	return s.status()
}

// boot starts the machine with the given durable term, and brings up its links to the other
// voters, which it returns.
func (s *script) boot(term int) []elector.NodeID {
	s.play("1s start term=%d %s", term, strings.Join(s.record0, " "))
	self := func(id elector.NodeID) bool { return id == s.self }
	others := slices.DeleteFunc(slices.Clone(s.m.Electorate()), self)
	for _, id := range others {
		s.play("1s up %s", id)
	}
	return others
}

// elect lets the others say yes until the machine has the role.
func (s *script) elect(role elector.Role) []elector.NodeID {
	others := s.boot(s.term0 - 1)
	s.play("5s random=0")
	s.play("5s")
	for range maxPasses {
		if s.m.State().Role == role {
			return others
		}
		before := s.m.State()
		for _, id := range others {
			if s.m.State().Role == before.Role {
				s.play("5s %s: yes", id)
			}
		}
		if s.m.State().Role == before.Role {
			s.d.Fatalf(s.t, "cannot make a %s of a %s", role, before.Role)
		}
	}
	s.d.Fatalf(s.t, "cannot make a %s in %d rounds", role, maxPasses)
	return nil
}

func (s *script) play(format string, args ...any) {
	s.line(fmt.Sprintf(format, args...))
}
