package elector_test

import (
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

// cast silently drives a new machine into the role that "as" names, in the term
// that "term" names, with all links up, and shows its status then, at 5s.
// Without "as" the machine stays DORMANT.
func (s *script) cast(cfg elector.Config) string {
	if s.role == "" {
		return ""
	}
	slow := s.slowDisk
	s.slowDisk = false
	others := s.others(cfg)
	switch s.role {
	case "idle":
		s.boot(s.term0, others)
		s.play("5s")
	case "follower":
		s.boot(s.term0-1, others)
		s.play("5s %s: LeaderHeartbeat term=%d lsn=%d.0 seq=1 sent=90s", others[0], s.term0, s.term0)
	case "candidate":
		s.elect(elector.Candidate, others)
	case "leader":
		s.elect(elector.Leader, others)
		for _, id := range others {
			s.play("5s %s: ack", id)
		}
	default:
		s.d.Fatalf(s.t, "no machine begins as %q", s.role)
	}
	s.slowDisk, s.random = slow, 50
	return s.status()
}

func (s *script) others(cfg elector.Config) []elector.NodeID {
	var ids []elector.NodeID
	for _, id := range cfg.Voters {
		if id != cfg.Self {
			ids = append(ids, id)
		}
	}
	return ids
}

// boot starts the machine with the given durable term and brings up its links.
func (s *script) boot(term int, others []elector.NodeID) {
	s.play("1s start term=%d", term)
	for _, id := range others {
		s.play("1s up %s", id)
	}
}

// elect lets the others say yes until the machine has the role.
func (s *script) elect(role elector.Role, others []elector.NodeID) {
	s.boot(s.term0-1, others)
	s.play("5s random=0")
	s.play("5s")
	for range maxPasses {
		if s.m.State().Role == role {
			return
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
}

func (s *script) play(format string, args ...any) {
	s.line(fmt.Sprintf(format, args...))
}
