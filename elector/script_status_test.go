package elector_test

import (
	"fmt"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
)

func (s *script) status() string {
	st := s.m.Status()
	var b strings.Builder
	fmt.Fprintf(&b, "%s term=%d leader=%s", st.Role, st.Term, orNone(st.Leader))
	if st.HintedLeader != "" {
		fmt.Fprintf(&b, " hinted=%s", st.HintedLeader)
	}
	if st.AwaitedLeader != "" {
		fmt.Fprintf(&b, " awaited=%s", st.AwaitedLeader)
	}
	fmt.Fprintf(&b, " lsn=%d.%d", st.LSN.Term, st.LSN.Counter)
	if st.PromisedTo != "" {
		fmt.Fprintf(&b, " promised=%s until %s", st.PromisedTo, st.PromiseEnd)
	}
	if st.EmbargoEnd != 0 {
		fmt.Fprintf(&b, " embargo until %s", st.EmbargoEnd)
	}
	switch {
	case st.LeaseEnd == elector.Never:
		b.WriteString(" lease=for ever")
	case st.LeaseEnd != 0:
		fmt.Fprintf(&b, " lease until %s", st.LeaseEnd)
	}
	if st.Role == elector.Leader {
		fmt.Fprintf(&b, " supporters=%v successor=%s", st.Supporters, orNone(s.m.BestSuccessor()))
	}
	return b.String() + s.duty(st) + "\n"
}

// duty is what the application has told the machine, if anything.
func (s *script) duty(st elector.Status) string {
	var b strings.Builder
	if s.m.State().Unable {
		b.WriteString(" unable")
	}
	if st.RestEnd != 0 {
		fmt.Fprintf(&b, " rests until %s", st.RestEnd)
	}
	if end := s.m.State().PauseEnd; end != 0 {
		fmt.Fprintf(&b, " paused until %s", end)
	}
	if s.m.State().Leader.Working {
		b.WriteString(" guarded")
	}
	if h := st.Handover; h != (elector.Handover{}) {
		fmt.Fprintf(&b, " handover=%s to %s", h.Cause, orNone(h.To))
		if h.Stopping {
			b.WriteString(" stopping")
		}
		fmt.Fprintf(&b, " until %s", h.End)
	}
	return b.String()
}
