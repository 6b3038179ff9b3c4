package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// manyMain measures three of our nodes in many elections, as the arguments say.
func manyMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("many", flag.ContinueOnError)
	counts := flags.String("elections", "1,1000,10000,30000", "how many elections, one run for each")
	profile := flags.String("profile", "article", "the timers")
	rest := flags.Duration("rest", 10*time.Second, "how long costs are measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := isolate(0); err != nil {
		fmt.Fprintln(os.Stderr, "traffic is that of the machine:", err)
	}
	dir, err := os.MkdirTemp("", "many-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("|elections|led after|led by each|CPU|KiB/s|packets/s|wake-ups/s|memory|opening one|" +
		"one killed: led after|CPU then|it comes back: followed after|" +
		"another stops, in|since the first came back 99 % and all without a leader below|\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, text := range strings.Split(*counts, ",") {
		n, err := strconv.Atoi(text)
		if err == nil {
			s := system{name: own, kind: *profile, nodes: 3}
			err = measureMany(ctx, prepare(s, filepath.Join(dir, text), 0), n, *rest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measureMany measures a cluster that is not started in n elections, and ends it.
func measureMany(ctx context.Context, c *cluster, n int, rest time.Duration) error {
	defer c.close()
	c.equip = func(spec *node.Spec) ([]string, error) { spec.Elections = n; return nil, nil }
	began := time.Now()
	if err := c.startAll(); err != nil {
		return err
	}
	took, err := c.allLed(ctx, n, began)
	if err != nil {
		return err
	}
	healthy, err := c.costs(ctx, rest, true)
	if err != nil {
		return err
	}
	opened := c.sums[0].Opened / time.Duration(n)
	var led []int
	for _, s := range c.sums {
		led = append(led, s.Led)
	}
	c.kill(0)
	again, err := c.allLed(ctx, n, time.Now())
	if err != nil {
		return err
	}
	alone, err := c.costs(ctx, rest, true)
	if err != nil {
		return err
	}
	if _, err := c.allLed(ctx, n, time.Now()); err != nil { // the newest times may not be counted yet
		return err
	}
	before := c.sums[2].Gaps
	began = time.Now()
	if err := c.start(0); err != nil {
		return err
	}
	back, err := c.allLed(ctx, n, began)
	if err != nil {
		return err
	}
	stopped, err := c.stop(1)
	if err == nil {
		_, err = c.allLed(ctx, n, time.Now())
	}
	if err != nil {
		return err
	}
	gaps := c.sums[2]
	for i, n := range before {
		gaps.Gaps[i] -= n
	}
	fmt.Printf("|%d|%.1f s|%v|%.2f %%|%.1f|%.0f|%.0f|%.0f MiB|%s|%.2f s|%.2f %%|%.1f s|%.1f s|%s, %s|\n", n,
		took.Seconds(), led, healthy.cpu, healthy.bytes/1024, healthy.packets, healthy.wakes,
		healthy.memory, opened.Round(time.Microsecond), again.Seconds(), alone.cpu, back.Seconds(),
		stopped.Seconds(), gaps.Within(0.99), gaps.Within(1))
	return err
}

// stop lets a node stop in good order, and returns how long that took.
func (c *cluster) stop(i int) (time.Duration, error) {
	p, began := c.processes[i], time.Now()
	c.processes[i] = nil // apply ignores its last reports
	err := p.command(node.Leave)
	if err == nil {
		err = p.cmd.Wait()
	}
	return time.Since(began), err
}

// allLed waits until all elections have one leader, and returns how long that took, from began on.
// Costs are to be measured a while later.
func (c *cluster) allLed(ctx context.Context, n int, began time.Time) (time.Duration, error) {
	for led, leaderless := 0, 0; led != n || leaderless > 0; {
		if time.Since(began) > 10*patience {
			return 0, fmt.Errorf("%d of %d elections have a leader, %d views of them none", led, n,
				leaderless)
		}
		// To look at all elections costs the nodes time.
		every := max(50*time.Millisecond, time.Duration(2*n+5*leaderless)*time.Microsecond)
		if err := c.pause(ctx, every); err != nil {
			return 0, err
		}
		c.sums = make([]*node.Sums, c.nodes)
		for _, i := range c.running() {
			if err := c.processes[i].command(node.Sum); err != nil {
				return 0, err
			}
		}
		all := func() bool {
			led, leaderless = 0, 0
			for _, i := range c.running() {
				if c.sums[i] == nil {
					return false
				}
				led, leaderless = led+c.sums[i].Led, leaderless+c.sums[i].Leaderless
			}
			return true
		}
		for !all() && time.Since(began) < 10*patience { // a node that opens very many answers later
			if err := c.pause(ctx, 5*time.Millisecond); err != nil {
				return 0, err
			}
		}
	}
	took := time.Since(began)
	return took, c.pause(ctx, 5*time.Second)
}
