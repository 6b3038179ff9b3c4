package audit

// worker follows one node's journal.
type worker struct {
	c      *checker
	newest map[int]*assignment // of each partition: what it has accepted last
}

func (w *worker) follow(l Line) {
	switch l.Event {
	case Started:
		for _, a := range w.newest {
			a.ended = true
		}
	case Begun, Worked, Ended:
		if a := w.assignment(l); a != nil {
			w.act(l, a)
		}
	case Assigned: // the leader's
	default:
		w.c.wrong("node %s: unknown event %q", l.Node, l.Event)
	}
}

// assignment is the one that a line is about, if this node may know it.
func (w *worker) assignment(l Line) *assignment {
	a := w.c.made[l.LSN]
	if a == nil {
		w.c.wrong("node %s has %s %s, which nobody assigned", l.Node, l.Event, l.LSN)
		return nil
	}
	if a.to != l.Node || a.partition != l.Partition {
		w.c.wrong("node %s has %s partition %d under another's assignment: %s", l.Node, l.Event, l.Partition, a)
		return nil
	}
	return a
}

func (w *worker) act(l Line, a *assignment) {
	newest := w.newest[l.Partition]
	switch {
	case l.Event == Begun:
		w.begin(l, a)
	case newest != a:
		w.c.wrong("node %s has %s %s after it accepted %v", l.Node, l.Event, a, newest)
	case a.ended:
		w.c.wrong("node %s has %s %s, which was no longer in force", l.Node, l.Event, a)
	}
	if l.Event == Worked {
		w.c.report.Worked++
	}
	a.ended = a.ended || l.Event == Ended
	if a.seen.Before(l.Time) {
		a.seen = l.Time
	}
}

func (w *worker) begin(l Line, a *assignment) {
	newest := w.newest[l.Partition]
	switch {
	case newest != nil && !newest.lsn.Less(a.lsn):
		w.c.wrong("node %s begins %s after it accepted %s", l.Node, a, newest)
	case newest != nil && !newest.ended:
		w.c.wrong("node %s begins %s beside %s", l.Node, a, newest)
	}
	w.c.report.Begun++
	w.newest[l.Partition] = a
	if a.begun.IsZero() || l.Time.Before(a.begun) {
		a.begun = l.Time
	}
}
