package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// API has the words of a store for what its clients ask: the kinds of requests.
type API struct {
	Grant     string // a lease of Request.TTL; ZooKeeper: a connection, too, of a session
	KeepAlive string // renews the lease
	Revoke    string // ends it
	Create    string // makes the client's key, unless the lease has one
	List      string // reads all keys
	Watch     string // asks for an Event for each of Watches that is gone
	Deleted   string // the kind of that Event

	AllRenew bool // any request with a lease renews it
}

// The stores that are modelled.
var (
	ZooKeeper = API{"connect", "ping", "closeSession", "create", "getChildren", "getData",
		"NodeDeleted", true}
	Etcd = API{"LeaseGrant", "LeaseKeepAlive", "LeaseRevoke", "Txn", "Range", "Watch",
		"DELETE", false}
)

// Request is what a client asks the store.
type Request struct {
	Kind    string
	Xid     uint64 // counts what a client asks; 0 for a KeepAlive
	Lease   uint64
	TTL     time.Duration
	Watches []uint64
}

// Reply answers a request.
type Reply struct {
	Kind    string
	Xid     uint64
	Lease   uint64
	Gone    bool   // there is no such lease
	Created uint64 // to Create: the number of the client's key
	Keys    []Key  // to List: the oldest first
}

// Key is a member's place in the queue for the lead.
type Key struct {
	Client  algorithm.NodeID
	Created uint64 // ZooKeeper: czxid; etcd: create revision
}

// String has what tells keys apart.
func (k Key) String() string { return fmt.Sprintf("%s=%d", k.Client, k.Created) }

// Local says that a replica answers alone: a server of ZooKeeper does so to pings and reads.
func (r Request) Local() bool {
	return r.Kind == ZooKeeper.KeepAlive || r.Kind == ZooKeeper.List || r.Kind == ZooKeeper.Watch
}

// Local is that of the request.
func (r Reply) Local() bool {
	return Request{Kind: strings.TrimSuffix(r.Kind, "Response")}.Local()
}

// Event tells who watches a key that it is gone.
type Event struct {
	Kind string
	Key  uint64
}
