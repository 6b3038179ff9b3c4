// Command etcd is a member of an etcd cluster, embedded. What it elects is the leader of
// its own Raft, or the holder of a concurrency.Election.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

func main() { node.Main(os.Args[len(os.Args)-1], start) }

// start starts a member, with etcd's default timers or, if the spec has a period, with
// that heartbeat period and an election time-out of ten, as by default.
func start(spec node.Spec, saw func(leader string)) (node.Member, error) {
	e, err := embed.StartEtcd(config(spec))
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return nil, err
	}
	if spec.Kind == "session" {
		return newCandidate(e, spec, saw), nil
	}
	s := server{e.Server, v3client.New(e.Server)}
	go s.observe(saw)
	return s, nil
}

func config(spec node.Spec) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = spec.ID(), spec.Dir
	if spec.Period != 0 {
		cfg.TickMs = uint(spec.Period / time.Millisecond)
		cfg.ElectionMs = 10 * cfg.TickMs
	}
	scheme := "http"
	if spec.TLSDir != "" {
		scheme = "https"
		file := func(name string) string { return filepath.Join(spec.TLSDir, name) }
		cfg.PeerTLSInfo = transport.TLSInfo{
			CertFile: file(node.CertFile), KeyFile: file(node.KeyFile),
			TrustedCAFile: file(node.CAFile), ClientCertAuth: true,
		}
	}
	peer, client := urls(scheme, spec.Addr(spec.Self, 0)), urls("http", spec.Addr(spec.Self, 1))
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = client, client
	cfg.InitialCluster = ""
	for i := range spec.Nodes {
		if i > 0 {
			cfg.InitialCluster += ","
		}
		cfg.InitialCluster += fmt.Sprintf("%s=%s://%s", node.Name(i), scheme, spec.Addr(i, 0))
	}
	cfg.LogLevel = "error"
	return cfg
}

func urls(scheme, addr string) []url.URL { return []url.URL{{Scheme: scheme, Host: addr}} }

// server elects the leader of etcd's own Raft.
type server struct {
	*etcdserver.EtcdServer
	client *clientv3.Client
}

// observe reports each new leader. etcd does not tell when there is none; that there was
// none is seen by a new term.
func (s server) observe(saw func(leader string)) {
	for term := uint64(0); ; {
		changed := s.LeaderChangedNotify()
		if m := s.Cluster().Member(s.Leader()); m != nil {
			if s.Term() != term {
				saw("")
			}
			term = s.Term()
			saw(m.Name)
		}
		<-changed
	}
}

func (s server) Leads() bool { return s.Leader() == s.MemberID() }

func (s server) Write(ctx context.Context, place int, value []byte) error {
	_, err := s.client.Put(ctx, fmt.Sprint("place ", place), string(value))
	return err
}

func (s server) HandOver() error {
	if !s.Leads() {
		return fmt.Errorf("%s does not lead", s.MemberID())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.MoveLeader(ctx, s.Lead(), uint64(s.heir()))
}

// heir is the member after this one.
func (s server) heir() types.ID {
	members := s.Cluster().Members() // sorted
	for _, m := range members {
		if m.ID > s.MemberID() {
			return m.ID
		}
	}
	return members[0].ID
}
