package clustertest

import (
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// work campaigns and does guarded work, until the node is closed.
func (p *process) work() {
	for {
		l, err := p.node.Default().Campaign(p.Life())
		p.Wait()
		switch {
		case err == nil:
			p.lead(l)
		case p.Killed() || p.node.Err() != nil || !p.isUp():
			return
		default: // refused for now, as when the node resigns
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// lead works as long as the leadership lasts, or somewhat shorter or longer.
func (p *process) lead(l *cluster.Leadership) {
	done := p.w.judge.begins(p, l)
	for l.Context().Err() == nil && !p.givesUp() {
		p.w.judge.token(p, l)
		if p.w.keeps {
			p.readRecord(l)
		}
		select {
		case <-l.Context().Done():
		case <-p.Done():
			return
		case <-time.After(10*time.Millisecond + p.dice.UpTo(300*time.Millisecond)):
		}
		p.Wait()
	}
	if l.Context().Err() != nil {
		p.stop(l)
	}
	if !p.Killed() {
		done()
		if !p.w.byRun() { // which releases it
			l.Release()
		}
	}
}

// givesUp reports whether work ends by itself: sometimes, as long as there are faults.
func (p *process) givesUp() bool {
	select {
	case <-p.w.calm:
		return false
	default:
		return !p.w.byRun() && p.dice.Below(200) == 0 // after that Run rests for up to a minute
	}
}

// stop ends work that was told to stop: in time, late, or never.
func (p *process) stop(l *cluster.Leadership) {
	left := max(time.Until(l.Deadline()), time.Millisecond)
	var until <-chan time.Time
	switch how := p.dice.Below(20); {
	case how < 10:
		until = time.After(p.dice.UpTo(20 * time.Millisecond))
	case how < 14:
		until = time.After(p.dice.UpTo(left))
	case how < 18:
		until = time.After(left + p.dice.UpTo(2*time.Second))
	}
	for {
		p.w.judge.token(p, l)
		select {
		case <-until:
			p.Wait()
			return
		case <-p.w.calm:
			p.Wait()
			return
		case <-p.Done():
			return
		case <-time.After(40*time.Millisecond + p.dice.UpTo(20*time.Millisecond)):
		}
		p.Wait()
	}
}
