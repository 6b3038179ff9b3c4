package elector

// state is State as a machine keeps it. It has memory only for the parts that are not zero, since a
// process may have a hundred thousand machines. The other parts are those of nobody, which all
// machines share. A part is read through its pointer, and written through the method that owns it
// first. The parts of the role are owned as long as the role lasts.
type state struct {
	Common
	*Rare
	Record    *recordState
	Refused   *question
	Follower  *followerState
	Seek      *seekState
	Candidate *candidateState
	Leader    *leaderState
	Writing   *writing
	By        []voterState // of the electorate; nil unless CANDIDATE or LEADER
}

// nobody has the parts that a machine has no memory for. It is zero for ever.
var nobody = new(State)

// own makes the memory of a part before it is written.
func own[T any](part **T, none *T) *T {
	if *part == none {
		*part = new(T)
	}
	return *part
}

// release gives the memory of a part back that is zero again.
func release[T comparable](part **T, none *T) {
	if *part != none && **part == *none {
		*part = none
	}
}

func (s *state) rare() *Rare          { return own(&s.Rare, &nobody.Rare) }
func (s *state) record() *recordState { return own(&s.Record, &nobody.Record) }
func (s *state) seek() *seekState     { return own(&s.Seek, &nobody.Follower.seekState) }
func (s *state) writing() *writing    { return own(&s.Writing, &nobody.Leader.Writing) }

// trim releases the parts that are zero after a step.
func (s *state) trim() {
	release(&s.Rare, &nobody.Rare)
	release(&s.Record, &nobody.Record)
	release(&s.Refused, &nobody.Refused)
	release(&s.Seek, &nobody.Follower.seekState)
	release(&s.Writing, &nobody.Leader.Writing)
}

// part makes the parts of the role, and takes away those of all others. A new leader keeps the
// support for the proposal that elected it.
func (s *state) part(voters int) {
	s.Follower, s.Seek = &nobody.Follower.followerState, &nobody.Follower.seekState
	s.Candidate = &nobody.Candidate
	s.Leader, s.Writing = &nobody.Leader.leaderState, &nobody.Leader.Writing
	switch s.Role {
	case Dormant:
		s.By = nil
	case Follower:
		s.Follower, s.By = &followerState{}, nil
	case Candidate:
		s.Candidate, s.By = &candidateState{}, make([]voterState, voters)
	case Leader:
		s.Leader = &leaderState{}
	}
}

// State returns what the machine remembers, for hashing and comparing.
func (m *Machine) State() State {
	s := &m.state
	all := State{Common: s.Common, Rare: *s.Rare, Record: *s.Record, Refused: *s.Refused,
		Candidate: *s.Candidate}
	all.Follower.followerState, all.Follower.seekState = *s.Follower, *s.Seek
	all.Leader.leaderState, all.Leader.Writing = *s.Leader, *s.Writing
	copy(all.By[:], s.By)
	return all
}
