package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Event is a node's transition on the wire.
type Event struct {
	Time   time.Time      `json:"time"`
	Node   cluster.NodeID `json:"node"`
	Group  string         `json:"group"`
	From   string         `json:"from"`
	To     string         `json:"to"`
	Reason string         `json:"reason"`
	Term   lsn.Term       `json:"term"`
	Leader cluster.NodeID `json:"leader,omitempty"`
	Peer   cluster.NodeID `json:"peer,omitempty"`
	Missed int            `json:"missed,omitempty"` // events lost before this one: the reader was too slow
}

// wire turns an event of node into its form on the wire.
func wire(node cluster.NodeID, e cluster.Event) Event {
	return Event{
		Time: e.Time, Node: node, Group: e.Group, From: e.From.String(), To: e.To.String(),
		Reason: e.Reason.String(), Term: e.Term, Leader: e.Leader, Peer: e.Peer, Missed: e.Missed,
	}
}

const (
	eventBuffer = 256
	// keepAlive is how often an idle stream says that it is alive, so that a
	// reader notices a dead connection.
	keepAlive = 2 * time.Second
)

// getEvents streams events until the reader, the node or the server goes.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) {
	sub := s.node.Subscribe(eventBuffer)
	defer sub.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	node := s.node.Status().Node
	for err := out.Flush(); err == nil; err = out.Flush() {
		select {
		case e, ok := <-sub.Events():
			if !ok {
				return
			}
			data, err := json.Marshal(wire(node, e))
			if err != nil {
				return
			}
			fmt.Fprintf(w, "event: transition\ndata: %s\n\n", data)
		case <-idle.C:
			fmt.Fprint(w, ": alive\n\n")
		case <-r.Context().Done():
			return
		}
	}
}
