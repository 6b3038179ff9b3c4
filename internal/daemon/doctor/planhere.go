package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/internal/store"
)

// onThisMachine looks at what a node of this machine needs of it.
func (d *draft) onThisMachine(ctx context.Context, p Plan) {
	if p.Running != nil {
		d.runsAlready(p)
		return
	}
	mark := len(d.Checks)
	for _, e := range p.endpoints() {
		d.listen(ctx, p, e)
	}
	if d.since(mark) {
		d.sound("addresses", p.File, "its ports are free, and what it advertises leads here")
	}
	d.dataDir(p)
}

// runsAlready judges a node that answers: it must be the one on this directory.
func (d *draft) runsAlready(p Plan) {
	if _, err := OwnerOf(p.Config.DataDir); !errors.Is(err, store.ErrLocked) {
		d.problem(Fail, "name-twice", "names", p.File, "node %s runs already, for %s, and not on %s: nobody uses that directory",
			p.Config.Node, short(p.Running.Uptime), p.Config.DataDir)
		return
	}
	d.sound("node", p.File, "%s runs already, for %s, and uses %s", p.Config.Node, short(p.Running.Uptime), p.Config.DataDir)
}

// listen binds an endpoint for a moment, and dials what is to be told of it.
func (d *draft) listen(ctx context.Context, p Plan, e endpoint) {
	ln, err := net.Listen("tcp", e.addr)
	if err != nil {
		d.cannotListen(p, e, "tcp", err)
		return
	}
	defer ln.Close()
	if e.udp {
		udp, err := net.ListenPacket("udp", ln.Addr().String())
		if err != nil {
			d.cannotListen(p, e, "udp", err)
			return
		}
		defer udp.Close()
	}
	if err := leadsHere(ctx, ln, e.advertise); err != nil {
		d.problem(Warn, "advertise-unreachable", "addresses", p.File, "%s is to be told to others for %s, but dialed from here it does not lead back: %s",
			e.advertise, e.flag, err).Mend = "dial it from another machine; some routers lead nobody back to himself. Else correct it, or open the way"
	}
}

func (d *draft) cannotListen(p Plan, e endpoint, network string, err error) {
	where := fmt.Sprintf("%s: %s %s", p.File, e.flag, e.addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		d.problem(Fail, PortTaken, "ports", where, "taken (%s) by %s", network, orSomebody(PortOwner(network, e.addr)))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		d.problem(Fail, AddressForeign, "addresses", where, "no interface of this machine has that address")
	default:
		d.problem(Fail, AddressForeign, "addresses", where, "cannot listen: %s", err)
	}
}

func orSomebody(owner string) string {
	if owner == "" {
		return "another process, which this user may not see"
	}
	return owner
}

// leadsHere dials an address and looks whether the connection comes in at ln; "" is
// the address of ln itself.
func leadsHere(ctx context.Context, ln net.Listener, advertised string) error {
	if advertised == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	word := rand.Text()
	heard := make(chan bool, 1)
	go func() { heard <- hears(ln, word) }()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", withPort(advertised, ln))
	if err != nil {
		ln.Close()
		<-heard
		return plain(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(word)) // a lost one is not heard
	select {
	case ok := <-heard:
		if ok {
			return nil
		}
	case <-ctx.Done():
		<-heard
	}
	return errors.New("somebody else answers there")
}

// hears accepts one connection and compares what it says.
func hears(ln net.Listener, word string) bool {
	conn, err := ln.Accept()
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(dialTime))
	said := make([]byte, len(word))
	n, _ := conn.Read(said)
	return string(said[:n]) == word
}

// withPort puts the port that was bound in place of port 0.
func withPort(addr string, ln net.Listener) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return addr
	}
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return net.JoinHostPort(host, port)
}
