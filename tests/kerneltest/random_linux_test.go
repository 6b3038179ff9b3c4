package kerneltest

import (
	"maps"
	"math"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// fast is about the fastest that Validate accepts.
func fast() elector.Timing {
	t := example()
	t.HeartbeatBroadcast, t.HeartbeatMissCount, t.Lease = 20*time.Millisecond, 5, 80*time.Millisecond
	t.InitialWait, t.MaxRandomWait = 320*time.Millisecond, 40*time.Millisecond
	t.ScoutingResult, t.ElectionResult = 160*time.Millisecond, 160*time.Millisecond
	return t
}

// chaos is a run with random faults. Each is repaired after a random time.
type chaos struct {
	*rig
	due     []repair
	did     map[string]int
	doing   string
	actions map[string]func(*chaos) // that are chosen from
	failing map[*voter]bool         // what fails there is undone later
	idle    []time.Duration         // from the repair of everything until a node worked
}

type repair struct {
	at time.Time
	do func()
}

// while returns a random time from 20 ms to 5 s, short or long with equal chances.
func (c *chaos) while() time.Duration {
	return time.Duration(float64(20*time.Millisecond) * math.Pow(250, c.rng.Float64()))
}

// later plans a repair.
func (c *chaos) later(do func()) { c.due = append(c.due, repair{time.Now().Add(c.while()), do}) }

// some returns n random voters.
func (c *chaos) some(n int) (chosen []*voter) {
	for _, i := range c.rng.Perm(len(c.voters))[:n] {
		chosen = append(chosen, c.voters[i])
	}
	return chosen
}

// leading returns the leader, or any voter if none leads, and the others.
func (c *chaos) leading() (leader *voter, others []*voter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	leader, others = c.voters[0], c.voters[1:]
	for i, v := range c.voters {
		if c.now[v.name].Leader == v.name {
			return v, slices.Concat(c.voters[:i], c.voters[i+1:])
		}
	}
	return leader, others
}

// actions are chosen with equal chances.
var actions = map[string]func(*chaos){
	"kill": func(c *chaos) {
		dead := c.some([]int{1, 1, 2, len(c.voters)}[c.rng.IntN(4)])
		c.kill(dead...)
		c.later(func() { c.start(dead...) })
	},
	"kill leader": func(c *chaos) {
		dead, _ := c.leading()
		c.kill(dead)
		c.later(func() { c.start(dead) })
	},
	"stop": func(c *chaos) {
		paused := c.some(1 + c.rng.IntN(3))
		c.signal(syscall.SIGSTOP, paused...)
		c.later(func() { c.signal(syscall.SIGCONT, paused...) })
	},
	"stop leader": func(c *chaos) {
		paused, _ := c.leading()
		c.signal(syscall.SIGSTOP, paused)
		c.later(func() { c.signal(syscall.SIGCONT, paused) })
	},
	"block": func(c *chaos) {
		v := c.some(len(c.voters))
		c.blockFor(v[0], v[1:1+c.rng.IntN(len(v)-1)])
	},
	"block leader": func(c *chaos) { c.blockFor(c.leading()) },
	"hold up and reset": func(c *chaos) {
		leader, others := c.leading()
		c.signal(syscall.SIGSTOP, others...)
		c.block(leader, "in", reset, "", others...)
		c.later(func() { c.clear(leader) })
		time.Sleep(time.Duration(c.rng.Int64N(int64(1500 * time.Millisecond))))
		c.signal(syscall.SIGCONT, others...)
	},
	"link down": func(c *chaos) {
		cut := c.some(1 + c.rng.IntN(2))
		for _, v := range cut {
			c.ip("link set", v.port, "down")
			c.later(func() { c.ip("link set", v.port, "up") })
		}
	},
	"sever": func(c *chaos) {
		v := c.some(2)
		c.sever(v[0], v[1], []which{idle, busy, each}[c.rng.IntN(3)])
	},
	"close":   func(c *chaos) { c.tell(c.some(1)[0], "close") },
	"abandon": func(c *chaos) { c.tell(c.some(1)[0], "abandon") },
	"transfer": func(c *chaos) {
		leader, _ := c.leading()
		c.tell(leader, "transfer", c.some(1)[0].name)
	},
	"stepdown": func(c *chaos) {
		leader, _ := c.leading()
		c.tell(leader, "stepdown")
	},
}

// publish makes all voters publish values and read the record, and changes voters now and then.
func (c *chaos) publish() {
	for _, v := range c.voters {
		v.cfg.Publishes = true
	}
	c.actions["turn"] = func(c *chaos) { c.tell(c.some(1)[0], "turn", c.some(1)[0].name) }
}

func (c *chaos) blockFor(at *voter, others []*voter) {
	way := []string{"in", "out", "both"}[c.rng.IntN(3)]
	c.block(at, way, targets[c.rng.IntN(len(targets))], "", others...)
	c.later(func() { c.clear(at) })
}

// repair makes the repairs that are due, or all.
func (c *chaos) repair(all bool) {
	slices.SortStableFunc(c.due, func(a, b repair) int { return a.at.Compare(b.at) })
	for len(c.due) > 0 && (all || time.Now().After(c.due[0].at)) {
		c.due[0].do()
		c.due = c.due[1:]
	}
}

// storm causes one fault after another, and repairs all of them.
func (c *chaos) storm(limit time.Duration) {
	names := slices.Sorted(maps.Keys(c.actions))
	for end := time.Now().Add(limit); time.Now().Before(end); {
		name := names[c.rng.IntN(len(names))]
		c.doing = name
		c.did[name]++
		c.actions[name](c)
		for next := time.Now().Add(c.while() / 5); time.Now().Before(next); time.Sleep(time.Millisecond) {
			c.repair(false)
		}
		c.restart()
	}
	c.repair(true)
	c.heal()
	c.restart()
}

// TestRandomFaults causes random faults, repairs all of them now and then, and demands that all
// voters follow one leader then.
func TestRandomFaults(t *testing.T) {
	limit, err := time.ParseDuration(os.Getenv("KERNELTEST_TIME"))
	if err != nil {
		limit = 10 * time.Second
	}
	for name, timing := range map[string]elector.Timing{"fast": fast(), "example": example()} {
		t.Run(name, func(t *testing.T) {
			if name == "fast" && rounds == 0 {
				t.Skip("only for make kernel")
			}
			t.Parallel()
			c := newChaos(build(t, seed(t), timing), actions)
			c.publish()
			c.start(c.voters...)
			for end := time.Now().Add(limit); time.Now().Before(end); {
				c.settle(20 * time.Second)
				c.storm(min(limit, 20*time.Second))
			}
			c.settle(20 * time.Second)
			require.Zero(t, c.ended, "none has a reason to end by itself")
			b, v := table{head: "timing"}, c.judge(0)
			b.add(v, name)
			t.Log(c.did, &b)
			c.mu.Lock() // the processes still report
			defer c.mu.Unlock()
			require.Empty(t, append(v.wrong(), unlike(c.records)...))
		})
	}
}
