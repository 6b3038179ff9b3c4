package clustertest

import (
	"container/heap"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// world is a cluster that runs a schedule. It belongs to the goroutine that plays it, which does
// everything by its agenda.
type world struct {
	*Cluster
	schedule
	members   []*supervised
	judge     *judge
	statement *statement
	agenda    agenda
	items     int // how many were on the agenda so far
	copies    int
	rules     map[pair]bool // for which pairs the firewall has a rule
	turns     map[any]int   // see undo
	calm      chan struct{} // closed when all faults have ended
	beside    []*process    // copies that run
	calls     atomic.Int64  // of the applications that have not returned
	wiped     *supervised   // its disk was lost, and it is not a voter again
}

// play runs a schedule, and returns what happened: the violation of a rule, if
// there was one, and the log.
func play(t *testing.T, s schedule) (broken *violation, log []string) {
	defer func() {
		if v := recover(); v != nil {
			broken = &violation{rule: "no goroutine is left", text: fmt.Sprint(v)}
		}
	}()
	inWorld(t, s, func(_ *testing.T, w *world) {
		defer func() { broken, log = w.judge.result() }()
		w.play()
	})
	return broken, log
}

// inWorld runs f with the cluster of a schedule, at its beginning.
func inWorld(t *testing.T, s schedule, f func(t *testing.T, w *world)) {
	Run(t, s.voters, func(t *testing.T, c *Cluster) {
		w := &world{
			Cluster: c, schedule: s, judge: newJudge(filepath.Dir(t.TempDir())),
			rules: map[pair]bool{}, turns: map[any]int{}, calm: make(chan struct{}),
		}
		w.statement = newStatement(w)
		for i, id := range s.voters {
			node := c.members[id]
			m := &supervised{member: node, w: w, disk: newDisk(node.dir), wanted: true}
			w.members = append(w.members, m)
			// Not at the same moment as another one.
			w.at(time.Duration(i)*7*time.Millisecond+time.Microsecond, m.supervise)
		}
		f(t, w)
	}, Down(s.voters...), Network(func(n *memnet.Network) { n.Delay(delays(s.seed)) }),
		Configure(func(cfg *cluster.Config) { cfg.Election.Timing = s.timing }))
}

// play does the steps, ends all faults, waits for a leader, and ends the nodes.
func (w *world) play() {
	at := bootTime
	for _, s := range w.steps {
		at += s.after
		w.at(at, func() { w.do(s) })
	}
	w.run(at)
	w.endFaults()
	w.settle()
	w.stop()
	w.keep()
}

// bootTime is longer than a first election takes.
const bootTime = 9 * time.Second

// at puts something on the agenda, for a time from now.
func (w *world) at(after time.Duration, do func()) {
	w.items++
	heap.Push(&w.agenda, item{time.Now().Add(after), w.items, do})
}

// undo ends a fault after its span, unless another fault of the same thing began meanwhile.
func (w *world) undo(of any, span time.Duration, end func()) {
	w.turns[of]++
	turn := w.turns[of]
	w.at(span, func() {
		if w.turns[of] == turn {
			end()
		}
	})
}

// run carries out the agenda for some time, or until a rule is broken. When it returns, all
// goroutines wait.
func (w *world) run(long time.Duration) {
	until := time.Now().Add(long)
	for w.judge.calm() {
		if len(w.agenda) == 0 || w.agenda[0].at.After(until) {
			time.Sleep(time.Until(until))
			synctest.Wait()
			return
		}
		next := heap.Pop(&w.agenda).(item)
		time.Sleep(time.Until(next.at))
		synctest.Wait()
		w.judge.lookAtCloses()
		next.do()
	}
}

// endFaults ends everything that went wrong.
func (w *world) endFaults() {
	w.judge.note("all faults end")
	close(w.calm)
	w.endCopies()
	for _, from := range w.members {
		for _, to := range w.members {
			w.net.Filter(string(from.id), string(to.id), memnet.Pass)
		}
	}
	for _, m := range w.members {
		m.fit() // first: a process that goes on is not to say what held before
		m.resume()
		m.disk.set(healthy)
		m.wanted = true
	}
}

// settle waits until all links are up and all members follow one leader, and checks that it
// stays.
func (w *world) settle() {
	const look = 100 * time.Millisecond
	began, bound := time.Now(), w.bound()
	leader := ""
	for leader == "" && w.judge.calm() {
		if time.Since(began) > bound {
			w.judge.breaks("a leader that all follow comes back", "not within %s: %s", bound, w.explain())
			return
		}
		w.run(look)
		leader = w.agreed()
		if time.Since(began) < 2*w.timing.Lease {
			leader = "" // voters that have just crashed count again only after a promise's time
		}
	}
	w.judge.note("%safter %s", leader, time.Since(began))
	w.run(10 * time.Second)
	if now := w.agreed(); now != leader && w.judge.calm() {
		w.judge.breaks("a leader stays", "%q led, and 10s later %q: %s", leader, now, w.explain())
	}
}

// bound returns how long it may take after all faults until there is a leader and every link.
func (w *world) bound() time.Duration {
	const links = 10 * time.Second // idle time-out, dial, handshake and pause of the mesh
	const rounds = 4               // that may fail by chance
	t := w.timing
	inactive := time.Duration(t.HeartbeatMissCount) * t.HeartbeatBroadcast
	restart := t.InitialWait + 2*t.Lease
	restart += longestMaintenance // before it nobody stands
	return links + restart + inactive + rounds*(t.MaxRandomWait+t.ScoutingResult+t.ElectionResult)
}

// agreed returns the leaders of all elections, if all members follow them. It returns "" if they
// do not, if a link is down, or if a call is under way that may end in a handover.
func (w *world) agreed() (leaders string) {
	if w.calls.Load() != 0 {
		return ""
	}
	for _, m := range w.members {
		st, ok := m.status()
		if !ok {
			return ""
		}
		own := ""
		for _, g := range st.Groups {
			if g.Leader != "" {
				own += fmt.Sprintf("%s leads %s ", g.Leader, g.Group)
			}
		}
		lacks := strings.Count(own, "leads") != len(w.elections)
		if lacks || anyDown(st) || leaders != "" && own != leaders {
			return ""
		}
		leaders = own
	}
	return leaders
}

func (w *world) explain() (text string) {
	for _, m := range w.members {
		st, ok := m.status()
		if !ok {
			text += fmt.Sprintf("\n  %s: %s", m.id, m.state())
			continue
		}
		text += fmt.Sprintf("\n  %s: ", m.id)
		for _, g := range st.Groups {
			text += fmt.Sprintf("%s: %s;", g.Group, g.Explanation)
		}
		for _, other := range st.Members {
			if other.Link != "up" {
				text += fmt.Sprintf(" %s is %s (%s)", other.Node, other.Link, other.LinkError)
			}
		}
	}
	return text
}

// stop ends all nodes, in order if no rule was broken.
func (w *world) stop() {
	for _, m := range w.members {
		m.wanted = false
		m.resume()
		m.disk.set(healthy)
		if w.judge.calm() {
			closing(30*time.Second)(m, time.Hour)
			continue
		}
		m.kill(time.Hour)
	}
	for began := time.Now(); time.Since(began) < time.Minute && w.busy(); {
		time.Sleep(100 * time.Millisecond)
	}
	synctest.Wait()
	w.judge.lookAtCloses()
	for _, m := range w.members {
		m.kill(time.Hour) // what did not close
	}
}

func (w *world) busy() bool {
	return slices.ContainsFunc(w.members, func(m *supervised) bool { return m.ending() })
}

// leader returns the member that says itself that it leads, or nil.
func (w *world) leader() *supervised {
	for _, m := range w.members {
		if p := m.process; p != nil && p.isUp() && p.leads() {
			return m
		}
	}
	return nil
}

// item is something to be done; agenda is a heap, the earliest first.
type item struct {
	at    time.Time
	order int
	do    func()
}

type agenda []item

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push and Pop are for package heap.
func (a *agenda) Push(x any) { *a = append(*a, x.(item)) }

// Pop removes the last item, as package heap wants it.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
