package service

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/sdnotify"
	"github.com/bmqelect/bmqelect/lsn"
)

// statusBuffer is more than the transitions of a few elections.
const statusBuffer = 64

// supervise tells the service manager, if there is one, that the node has started, what
// it is in the default election, and that it lives. The returned function says that the
// node is about to stop; signs of life go on until the process ends, since a handover
// takes time.
func supervise(node *cluster.Node, log hclog.Logger) (stopping func()) {
	warn := func(err error) {
		if err != nil {
			log.Warn("the service manager was not told", "error", err)
		}
	}
	sub := node.Subscribe(statusBuffer) // first, so that nothing is missed between
	now := node.Status().Groups[0]
	warn(sdnotify.Send("READY=1\n" + statusLine(now.Role, now.Leader, now.Term)))
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range sub.Events() {
			if e.Group == cluster.DefaultGroup {
				warn(sdnotify.Send(statusLine(e.To.String(), e.Leader, e.Term)))
			}
		}
	})
	// The driver must answer: a node whose driver hangs gives no sign of life.
	go sdnotify.Watch(context.Background(), func() bool { return node.Status().Failure == "" }, warn)
	return func() {
		sub.Close()
		wg.Wait()
		warn(sdnotify.Send("STOPPING=1\nSTATUS=stopping"))
	}
}

// statusLine is what a node is in an election, for a list of services.
func statusLine(role string, leader cluster.NodeID, term lsn.Term) string {
	switch {
	case role == elector.Leader.String():
		return fmt.Sprintf("STATUS=leads in term %d", term)
	case leader != "":
		return fmt.Sprintf("STATUS=follows %s in term %d", leader, term)
	}
	return fmt.Sprintf("STATUS=no leader; %s in term %d", strings.ToLower(role), term)
}
