package kerneltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// onAnyProcess are the actions that also work for voters that take no orders.
var onAnyProcess = []string{"kill", "kill leader", "stop", "stop leader", "block", "block leader",
	"hold up and reset", "link down", "sever"}

// harsher are the actions for voters on disks.
func harsher() map[string]func(*chaos) {
	all := map[string]func(*chaos){
		"stop leader until another leads": func(c *chaos) {
			leader, _ := c.leading()
			c.signal(syscall.SIGSTOP, leader)
			c.due = append(c.due, repair{time.Now().Add(brisk().Lease + 2*brisk().InitialWait),
				func() { c.signal(syscall.SIGCONT, leader) }})
		},
		"SIGKILL storm": func(c *chaos) { c.killStorm(5) },
		"SIGSTOP storm": func(c *chaos) { c.stopStorm(30) },
	}
	for _, f := range failures() {
		if f.undo != nil {
			all[f.name] = func(c *chaos) { c.failFor(f) }
		}
	}
	return all
}

// failFor lets a failure happen to one or two random voters without one.
func (c *chaos) failFor(f failure) {
	befell := false
	for _, v := range c.some(1 + c.rng.IntN(2)) {
		if v.cmd == nil || c.failing[v] {
			continue
		}
		c.failing[v], befell = true, true
		sure := c.mayEnd(v)
		f.do(c.rig, v)
		c.later(func() {
			f.undo(c.rig, v)
			c.start(v) // unless it runs
			sure()
			delete(c.failing, v)
		})
	}
	if !befell {
		c.did[c.doing]--
	}
}

// terminate lets a random `bmqnode exec` end.
func (c *chaos) terminate() {
	c.signal(syscall.SIGTERM, c.some(1)...)
}

// chaosLive is a run of two clusters: one of programs that embed the elector, one of bmqnode exec.
type chaosLive struct {
	t        *testing.T
	embedded *chaos
	commands *chaos
}

// TestChaosLive is for `make chaos-live`. It causes all faults at random, and lets independent
// programs judge the history: porcupine, and the specification of the protocol.
func TestChaosLive(t *testing.T) {
	limit, err := time.ParseDuration(os.Getenv("CHAOS_TIME"))
	if err != nil {
		t.Skip("only for make chaos-live")
	}
	if bmqnode == "" {
		t.Skip("needs KERNELTEST_BMQNODE, the bmqnode to test")
	}
	s := seed(t)
	x := &chaosLive{t: t}
	x.embedded = newChaos(onDisks(t, build(t, s, brisk())), actions, harsher())
	few := map[string]func(*chaos){"terminate": (*chaos).terminate}
	for _, name := range onAnyProcess {
		few[name] = actions[name]
	}
	x.commands = newChaos(onDisks(t, buildOf(t, 3, s, brisk())), few, harsher())
	for _, v := range x.commands.voters {
		v.cfg.Exec = true
	}
	x.embedded.serveRegister()
	x.embedded.publish()
	var both sync.WaitGroup
	for _, c := range []*chaos{x.embedded, x.commands} {
		both.Go(func() { c.runFor(limit) })
	}
	both.Wait()
	x.verdict(fmt.Sprintf("make chaos-live CHAOS_TIME=%s KERNELTEST_SEED=%d", limit, s))
}

func newChaos(r *rig, sets ...map[string]func(*chaos)) *chaos {
	c := &chaos{rig: r, did: map[string]int{}, failing: map[*voter]bool{},
		actions: map[string]func(*chaos){}}
	for _, set := range sets {
		maps.Copy(c.actions, set)
	}
	return c
}

// runFor causes faults for some time. Now and then it repairs everything, and demands that some
// node works.
func (c *chaos) runFor(limit time.Duration) {
	c.start(c.voters...)
	for end := time.Now().Add(limit); time.Now().Before(end); {
		c.awaitWork()
		c.storm(min(limit, 20*time.Second))
		c.restart()
	}
	c.awaitWork()
	c.kill(c.voters...) // so that all is told by the time of the verdict
}

// awaitWork waits for work that begins after now.
func (c *chaos) awaitWork() {
	from, next := now(), c.told()
	at := time.Now()
	for time.Since(at) < 60*time.Second {
		found := false
		c.lookFor(next, time.Second, func(rec record) bool {
			found = found || rec.From > from && (rec.Kind == runs || rec.Kind == works)
			return found
		})
		if found {
			c.idle = append(c.idle, time.Since(at))
			return
		}
		c.restart()
	}
	c.t.Errorf("nobody works within a minute after all was healed at %.4f", float64(from)/1e9)
}

// verdict judges both histories, and logs what was done.
func (x *chaosLive) verdict(repeat string) {
	for name, c := range map[string]*chaos{"embedded": x.embedded, "bmqnode exec": x.commands} {
		kept := c.keep("chaos-live-*.json")
		x.t.Logf("%s: judging %s", name, kept)
		found := c.judge(0)
		wrong := slices.Concat(found.wrong(), notLinearizable(c.records), unlike(c.records))
		x.t.Logf("%s: %s", name, c.figures(&found, len(wrong)))
		if len(wrong) > 0 {
			x.t.Errorf("%s:\n%s\nhistory: %s\nagain: %s\njudge it again: KERNELTEST_HISTORY=FILE "+
				"go -C tests test ./kerneltest -run TestAHistoryThatWasKept", name,
				strings.Join(wrong, "\n"), kept, repeat)
		} else {
			require.NoError(x.t, os.Remove(kept))
		}
	}
	if x.t.Failed() {
		x.t.Log("again:", repeat)
	}
}

// figures describes a run in numbers.
func (c *chaos) figures(v *verdict, wrong int) string {
	answers, kinds, led, commands := 0, map[string]int{}, 0, map[string]bool{}
	stale, transitions, terms := 0, 0, map[lsn.Term]bool{}
	outcomes := map[string]int{}
	for _, rec := range c.records {
		if kinds[rec.Kind]++; rec.Kind == published {
			outcomes[rec.Outcome]++
		}
		answers += rec.Yes
		switch {
		case rec.Refused:
			stale++
		case rec.Kind == runs:
			commands[fmt.Sprint(rec.Node, rec.Process)] = true
		case rec.Moved != nil:
			transitions++
			if rec.Moved.To == elector.Leader.String() {
				led++
				terms[rec.Moved.Term] = true
			}
		}
	}
	faults := 0
	for _, n := range c.did {
		faults += n
	}
	return fmt.Sprintf("%d processes (%d ended by themselves), %d faults %v\n"+
		"%d answers of IsLeader (%d singly), %d leaderships in %d terms, %d transitions, "+
		"%d proofs of death\n"+
		"%d tokens, %d writes (%d refused, %d never came), %d reads, %d commands\n"+
		"%d values published (%v), %d reads of the record as leader, %d versions shown\n"+
		"work after all was healed: %s at worst, of %d times\nviolations: %d",
		c.started, c.ended, faults, c.did,
		answers+kinds[answer], kinds[answer], led, len(terms), transitions,
		v.Proofs, kinds[token], kinds[writes], stale, kinds[writes]-kinds[wrote], kinds[read],
		len(commands), kinds[publishes], outcomes, kinds[asLeader], kinds[shows],
		slices.Max(append(c.idle, 0)).Round(time.Millisecond), len(c.idle), wrong)
}

// TestAHistoryThatWasKept judges the files of runs, again or those of make chaos.
func TestAHistoryThatWasKept(t *testing.T) {
	pattern := os.Getenv("KERNELTEST_HISTORY")
	if pattern == "" {
		t.Skip("needs KERNELTEST_HISTORY, files of make chaos-live or make chaos")
	}
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	acts := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var h history
		require.NoError(t, json.Unmarshal(text, &h))
		r := &rig{records: h.Records, lives: h.Lives, doubt: h.Doubt}
		found := r.judge(0)
		wrong := slices.Concat(found.wrong(), notLinearizable(r.records), unlike(r.records))
		assert.Empty(t, wrong, file)
		acts += len(h.Records)
	}
	t.Logf("%d histories of %d acts", len(files), acts)
}
