package store

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// API says in whose words a message is written.
type API uint8

// The stores that are modelled.
const (
	ZooKeeper API = iota
	Etcd
)

// Op is what a client asks for.
type Op uint8

// The operations.
const (
	Grant     Op = iota + 1 // a lease of Request.TTL; ZooKeeper: or a new connection of Lease
	KeepAlive               // renews the lease
	Revoke                  // ends the lease
	Create                  // makes the client's key, unless the lease has one
	List                    // reads all keys
	Watch                   // an Event for each of Watches that is gone
)

// names are the operations' names, as each API has them.
var names = [2][Watch + 1]string{
	ZooKeeper: {"none", "connect", "ping", "closeSession", "create", "getChildren", "getData"},
	Etcd: {"none", "LeaseGrant", "LeaseKeepAlive", "LeaseRevoke", "Txn", "Range",
		"Watch"},
}

func (a API) name(op Op) string {
	if a > Etcd || op > Watch {
		return "unknown"
	}
	return names[a][op]
}

// Request is what a client asks the store.
type Request struct {
	API     API
	Op      Op
	Xid     uint64 // counts the client's requests; a repeated one has the number it had
	Lease   uint64 // 0 for a new one
	TTL     time.Duration
	Watches []uint64 // with Watch and KeepAlive: all keys that the client watches
}

// Reply answers a request. Lease is 0 if the lease has ended.
type Reply struct {
	API     API
	Op      Op
	Xid     uint64
	Lease   uint64
	Created uint64 // to Create: the number of the client's key
	Keys    []Key  // to List: the oldest first
}

// Key is a member's place in the queue for the lead.
type Key struct {
	Client  algorithm.NodeID
	Lease   uint64
	Created uint64 // ZooKeeper: czxid; etcd: create revision
}

// Event tells the watchers of a key that it is gone.
type Event struct {
	API     API
	Deleted uint64 // the number of the key
}

// Name implements algorithm.Message.
func (r Request) Name() string { return r.API.name(r.Op) }

// String implements algorithm.Message.
func (r Request) String() string {
	text := r.Name()
	if r.Lease != 0 {
		text += fmt.Sprintf(" lease=%d", r.Lease)
	}
	if r.TTL != 0 {
		text += fmt.Sprintf(" ttl=%s", r.TTL)
	}
	if len(r.Watches) > 0 {
		text += fmt.Sprintf(" watches=%v", r.Watches)
	}
	return text
}

// Name implements algorithm.Message.
func (r Reply) Name() string { return r.API.name(r.Op) + "Response" }

// String implements algorithm.Message.
func (r Reply) String() string {
	text := r.Name()
	if r.Lease == 0 {
		return text + " expired"
	}
	text += fmt.Sprintf(" lease=%d", r.Lease)
	if r.Created != 0 {
		text += fmt.Sprintf(" created=%d", r.Created)
	}
	for _, k := range r.Keys {
		text += fmt.Sprintf(" %s=%d", k.Client, k.Created)
	}
	return text
}

// Name implements algorithm.Message.
func (e Event) Name() string {
	return [...]string{ZooKeeper: "NodeDeleted", Etcd: "DELETE"}[e.API&1]
}

// String implements algorithm.Message.
func (e Event) String() string { return fmt.Sprintf("%s %d", e.Name(), e.Deleted) }
