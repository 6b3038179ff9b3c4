// Command raft is a node of hashicorp/raft with the disk that its authors recommend. Their
// raft-wal v0.4.0 cannot open some logs of a process that was killed, and raft-boltdb
// v2.3.1 does not compile beside raft v1.8.0.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

func main() { node.Main(os.Args[len(os.Args)-1], start) }

type member struct{ *raft.Raft }

// start starts a voter. The spec's period, if any, is the heartbeat and election
// time-out; the leader's lease is as long, the longest that is allowed.
func start(spec node.Spec, saw func(leader string)) (node.Member, error) {
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(spec.ID())
	cfg.LogOutput = io.Discard
	if spec.Period != 0 {
		cfg.HeartbeatTimeout, cfg.ElectionTimeout = spec.Period, spec.Period
		cfg.LeaderLeaseTimeout = spec.Period
		cfg.CommitTimeout = min(cfg.CommitTimeout, spec.Period)
	}
	if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
		return nil, err
	}
	log, err := raftboltdb.NewBoltStore(filepath.Join(spec.Dir, "raft.db"))
	if err != nil {
		return nil, err
	}
	transport, err := listen(spec)
	if err != nil {
		return nil, err
	}
	snapshots := raft.NewDiscardSnapshotStore()
	if err := bootstrap(spec, cfg, log, snapshots, transport); err != nil {
		return nil, err
	}
	r, err := raft.NewRaft(cfg, nothing{}, log, log, snapshots, transport)
	if err != nil {
		return nil, err
	}
	news := make(chan raft.Observation, 64)
	r.RegisterObserver(raft.NewObserver(news, true, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	}))
	_, leader := r.LeaderWithID() // may have been found before the observer was there
	go func() {
		saw(string(leader))
		for o := range news {
			saw(string(o.Data.(raft.LeaderObservation).LeaderID))
		}
	}()
	return member{r}, nil
}

// listen makes the transport, with TLS if the spec says so.
func listen(spec node.Spec) (*raft.NetworkTransport, error) {
	addr := spec.Addr(spec.Self, 0)
	secret, err := spec.TLS()
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return raft.NewTCPTransport(addr, nil, 3, 10*time.Second, io.Discard)
	}
	listener, err := tls.Listen("tcp", addr, secret)
	if err != nil {
		return nil, err
	}
	return raft.NewNetworkTransport(secured{listener, secret}, 3, 10*time.Second, io.Discard), nil
}

// secured is a stream layer with TLS.
type secured struct {
	net.Listener
	config *tls.Config
}

func (s secured) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", string(addr), s.config)
}

// bootstrap writes the members to a directory that has none yet.
func bootstrap(spec node.Spec, cfg *raft.Config, log *raftboltdb.BoltStore,
	snapshots raft.SnapshotStore, transport raft.Transport) error {
	exists, err := raft.HasExistingState(log, log, snapshots)
	if err != nil || exists {
		return err
	}
	var members raft.Configuration
	for i := range spec.Nodes {
		members.Servers = append(members.Servers, raft.Server{
			ID: raft.ServerID(node.Name(i)), Address: raft.ServerAddress(spec.Addr(i, 0)),
		})
	}
	if err := raft.BootstrapCluster(cfg, log, log, snapshots, transport, members); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

func (m member) Leads() bool     { return m.State() == raft.Leader }
func (m member) HandOver() error { return m.LeadershipTransfer().Error() }

// nothing is a state machine that nobody writes to.
type nothing struct{}

func (nothing) Apply(*raft.Log) any                  { return nil }
func (nothing) Restore(r io.ReadCloser) error        { return r.Close() }
func (nothing) Snapshot() (raft.FSMSnapshot, error)  { return nothing{}, nil }
func (nothing) Persist(sink raft.SnapshotSink) error { return sink.Close() }
func (nothing) Release()                             {}
