package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// statusBuffer has room for the transitions of a few elections.
const statusBuffer = 64

// supervise tells the service manager, if there is one, that the node has started, its role in the
// default election, and that it is alive. The returned function says that the node is about to
// stop. Signs of life go on until the process ends, because a handover takes time.
func supervise(node *cluster.Node, log hclog.Logger) (stopping func()) {
	warn := func(err error) {
		if err != nil {
			log.Warn("the service manager was not told", "error", err)
		}
	}
	sub := node.Subscribe(statusBuffer) // before the status is read, so that no transition is missed
	now := node.Default().Status()
	warn(notify("READY=1\n" + statusLine(now.Role, now.Leader, now.Term)))
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range sub.Events() {
			if e.Group == cluster.DefaultGroup {
				warn(notify(statusLine(e.To.String(), e.Leader, e.Term)))
			}
		}
	})
	// Lookup waits for the driver: a node whose driver hangs gives no sign of life.
	go giveSigns(context.Background(), func() bool {
		_, _ = node.Lookup(cluster.DefaultGroup)
		return node.Err() == nil
	}, warn)
	return func() {
		sub.Close()
		wg.Wait()
		warn(notify("STOPPING=1\nSTATUS=stopping"))
	}
}

// statusLine describes a node's role, for a list of services.
func statusLine(role string, leader cluster.NodeID, term lsn.Term) string {
	switch {
	case role == elector.Leader.String():
		return fmt.Sprintf("STATUS=leads in term %d", term)
	case leader != "":
		return fmt.Sprintf("STATUS=follows %s in term %d", leader, term)
	}
	return fmt.Sprintf("STATUS=no leader; %s in term %d", strings.ToLower(role), term)
}

var (
	sending    = make(chan struct{}, 1) // one message at a time
	errTimeout = errors.New("it has not read for 1s")
)

// notify sends assignments such as READY=1, one a line, to the service manager, if there is one:
// see sd_notify(3). go-systemd alone would wait for a manager that does not read; notify gives up.
func notify(assignments string) error {
	timeout := time.After(time.Second)
	select {
	case sending <- struct{}{}:
	case <-timeout:
		return errTimeout
	}
	sent := make(chan error, 1)
	go func() {
		_, err := daemon.SdNotify(false, assignments)
		<-sending
		sent <- err
	}()
	select {
	case err := <-sent:
		return err
	case <-timeout:
		return errTimeout
	}
}

// giveSigns sends a sign of life twice in each WATCHDOG_USEC until ctx ends, but only after alive
// has returned true. failed gets the errors.
func giveSigns(ctx context.Context, alive func() bool, failed func(error)) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 { // no signs are wanted
		failed(err)
		return
	}
	next := time.NewTicker(max(interval/2, time.Millisecond))
	defer next.Stop()
	for {
		select {
		case <-next.C:
			if alive() {
				failed(notify(daemon.SdNotifyWatchdog))
			}
		case <-ctx.Done():
			return
		}
	}
}
