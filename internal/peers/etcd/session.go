package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

const (
	prefix = "/leader"
	// ttl is a session's least time to live, in seconds. The server raises it to 15
	// heartbeat periods.
	ttl = 1
)

// candidate campaigns by sessions, through a client within the member's process.
type candidate struct {
	id     string
	client *clientv3.Client
	saw    func(leader string)
	held   atomic.Pointer[held]
	lost   chan struct{} // tells campaign that the election held was given up
}

// held is an election that was won, while its session lasts.
type held struct {
	election *concurrency.Election
	session  *concurrency.Session
}

func newCandidate(e *embed.Etcd, spec node.Spec, saw func(leader string)) *candidate {
	id := fmt.Sprintf("%s.%d", spec.ID(), spec.Life) // keys outlive processes
	c := &candidate{id: id, client: v3client.New(e.Server), saw: saw,
		lost: make(chan struct{}, 1)}
	go func() {
		for ; ; time.Sleep(10 * time.Millisecond) {
			c.campaign()
		}
	}()
	return c
}

// campaign campaigns for as long as a session lasts.
func (c *candidate) campaign() {
	s, err := concurrency.NewSession(c.client, concurrency.WithTTL(ttl))
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	e := concurrency.NewElection(s, prefix)
	go c.observe(s, e)
	for e.Campaign(s.Ctx(), c.id) == nil {
		c.held.Store(&held{e, s})
		c.saw(c.id)
		select {
		case <-c.lost:
		case <-s.Done():
			c.held.Store(nil)
			c.saw("")
			return
		}
	}
}

// observe reports the holders; it begins again when the watch breaks.
func (c *candidate) observe(s *concurrency.Session, e *concurrency.Election) {
	for s.Ctx().Err() == nil {
		for resp := range e.Observe(s.Ctx()) {
			c.saw(string(resp.Kvs[0].Value))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *candidate) Leads() bool {
	h := c.held.Load()
	if h == nil {
		return false
	}
	select {
	case <-h.session.Done():
		return false
	default:
		return true
	}
}

// HandOver resigns. The program is the one that gives up, so it does not claim to lead
// from then on.
func (c *candidate) HandOver() error {
	h := c.held.Swap(nil)
	if h == nil {
		return errors.New("this node holds no election")
	}
	err := h.election.Resign(context.Background())
	c.lost <- struct{}{}
	return err
}
