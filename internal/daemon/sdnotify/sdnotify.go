// Package sdnotify tells the service manager, such as systemd, how the node is: see
// sd_notify(3). Unlike go-systemd alone it does not wait for a manager that does not read.
package sdnotify

import (
	"context"
	"errors"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

var (
	sending    = make(chan struct{}, 1) // one message at a time
	errTimeout = errors.New("it has not read for 1s")
)

// Send sends assignments such as READY=1, one a line; nothing where there is no manager.
func Send(assignments string) error {
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

// Watch sends a sign of life at every half of WATCHDOG_USEC until ctx ends, each time only
// after alive has returned true: while alive blocks nothing is sent. failed gets the errors.
func Watch(ctx context.Context, alive func() bool, failed func(error)) {
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
				failed(Send(daemon.SdNotifyWatchdog))
			}
		case <-ctx.Done():
			return
		}
	}
}
