package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/elector"
)

// asProcess tells this binary that a test has started it as a process of the service.
const asProcess = "COORDINATOR_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		if err := beProcess(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// beProcess is main, with faster elections.
func beProcess() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	c.cluster.Election.Timing = quick()
	return serve(ctx, c, hclog.New(&hclog.LoggerOptions{Output: os.Stdout}))
}

func quick() elector.Timing {
	t := elector.Article()
	t.InitialWait, t.MaxRandomWait = t.Promise(), 500*time.Millisecond
	return t
}

// address is one of this test's own: every process of a machine has a loopback
// address that no other one uses, so ports are free, and stay free while a node
// is down.
func address(port int) string {
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 10+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// arguments are the command line of the i-th of three processes.
func arguments(dir string, i int) []string {
	var join []string
	for n := range three {
		join = append(join, address(7611+n))
	}
	return []string{
		"-voters", "a,b,c", "-node", string(three[i]), "-data", filepath.Join(dir, string(three[i])),
		"-gossip", address(7611 + i), "-mesh", address(7621 + i), "-http", address(7631 + i),
		"-join", strings.Join(join, ","), "-grant", "500ms", "-every", "50ms", "-partitions", strconv.Itoa(partitions),
	}
}
