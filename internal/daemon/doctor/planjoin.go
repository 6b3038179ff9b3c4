package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// dialTime bounds one attempt to connect.
const dialTime = 2 * time.Second

// join looks whether nodes will find each other.
func (d *draft) join(ctx context.Context) {
	named := map[string][]string{} // join address to the files that name it
	var addrs []string
	for _, p := range d.plans {
		for _, addr := range p.Config.Join {
			if named[addr] == nil {
				addrs = append(addrs, addr)
			}
			named[addr] = append(named[addr], p.File)
		}
	}
	d.alone(addrs)
	outcome := make([]error, len(addrs))
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() { outcome[i] = dial(ctx, addr) })
	}
	wg.Wait()
	for i, addr := range addrs {
		d.joined(addr, list(slices.Compact(named[addr])), outcome[i])
	}
}

// alone names nodes that nobody will find.
func (d *draft) alone(addrs []string) {
	for _, p := range d.plans {
		told := p.Config.AdvertiseGossip
		if told == "" {
			told = p.Config.GossipAddr
		}
		// A name may lead anywhere, and one file alone does not know who names it.
		known := len(d.plans) == 1 || slices.Contains(addrs, told) || slices.ContainsFunc(addrs, func(a string) bool { return !hostOf(a).IsValid() })
		if len(p.Config.Join) == 0 && len(p.Config.Voters) > 1 && !known {
			d.problem(Fail, JoinNobody, "join", p.File, "it joins nobody, and nobody joins it at %s", told)
		}
	}
}

func dial(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// joined judges an attempt to connect to a join address. Nobody need listen yet.
func (d *draft) joined(addr, files string, err error) {
	where := fmt.Sprintf("%s (%s)", addr, files)
	var noName *net.DNSError
	switch {
	case err == nil:
		d.sound("join", where, "somebody listens there")
	case errors.As(err, &noName):
		d.problem(Fail, JoinUnresolved, "join", where, "%s", plain(err))
	case errors.Is(err, syscall.ECONNREFUSED):
		d.sound("join", where, "its machine answers; nobody listens there yet")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		d.problem(Fail, JoinUnreachable, "join", where, "no answer within %s: the machine is down, or a firewall drops what is sent to it", dialTime)
	default:
		d.problem(Fail, JoinUnreachable, "join", where, "%s", plain(err))
	}
}

// plain is an error without the address that its reader knows already.
func plain(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
