package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/elector"
)

// pauseFile names, to a child process, the file that asks it to pause.
const pauseFile = "FENCING_HTTP_PAUSE_FILE"

// TestMain is a node of the example where a test has started this binary as one.
func TestMain(m *testing.M) {
	if file := os.Getenv(pauseFile); file != "" {
		if err := beNode(file); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// beNode is main, with faster elections and a place to pause.
func beNode(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, cfg, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	cfg.Election.Timing = quick()
	http.DefaultTransport = pausing{http.DefaultTransport, file}
	return w.run(ctx, cfg, hclog.New(&hclog.LoggerOptions{Output: os.Stdout}))
}

// quick makes elections as fast as the lease permits.
func quick() elector.Timing {
	timing := elector.Article()
	timing.InitialWait = timing.Promise()
	timing.MaxRandomWait = 500 * time.Millisecond
	return timing
}

// pausing stops this process between a request's making and its sending, once
// in all the processes that share the file: whoever removes it.
type pausing struct {
	http.RoundTripper
	file string
}

// RoundTrip forgets the request's deadline where it has paused: to the resource
// the request has only been long on its way.
func (p pausing) RoundTrip(req *http.Request) (*http.Response, error) {
	if os.Remove(p.file) == nil {
		fmt.Printf("paused with token=%s\n", req.Header.Get(tokenHeader))
		stopHere()
		req = req.WithContext(context.WithoutCancel(req.Context()))
	}
	return p.RoundTripper.RoundTrip(req)
}

// stopHere stops the process at this very line: the signal goes to the thread
// that sends it, which therefore goes no further.
func stopHere() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP); err != nil {
		panic(err)
	}
}
