package gossip

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/elector"
)

// State is what gossip believes of a member. It is a hint.
type State string

// The states of a member.
const (
	StateAlive State = "alive" // answers probes, or is merely suspected
	StateLeft  State = "left"  // said goodbye
	StateDead  State = "dead"  // stopped answering
)

// Member is what gossip knows of one node.
type Member struct {
	Node       elector.NodeID
	GossipAddr string // ip:port
	Meta
	State State
}

// metaFormat is the first byte of encoded metadata. The fields after it are a
// map, so a field can be added without a new format.
const metaFormat = 1

// Meta is what a node tells the others about itself. Encoded it takes at most
// 512 bytes, which Start checks. Older nodes send the keys c and p, so they must not be
// used for other fields.
type Meta struct {
	MeshAddr  string `codec:"m"`           // host:port of the node's mesh listener
	AdminAddr string `codec:"a,omitempty"` // host:port of its admin server; may be empty
	Version   string `codec:"v,omitempty"` // software version, for people
	// Voter says that the node votes. It is the node's own claim; nobody relies on it.
	Voter bool `codec:"o,omitempty"`
}

// wireMeta is the encoded form of Meta.
type wireMeta struct {
	Meta
	// Leaving is set shortly before a graceful leave: memberlist does not say
	// whether a member left or died.
	Leaving bool `codec:"l,omitempty"`
}

// encodeMeta returns the wire form of w, or an error if it is too large.
func encodeMeta(w wireMeta) ([]byte, error) {
	var body []byte
	if err := codec.NewEncoderBytes(&body, metaHandle()).Encode(w); err != nil {
		return nil, fmt.Errorf("encode node metadata: %w", err)
	}
	buf := append([]byte{metaFormat}, body...)
	if len(buf) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("node metadata takes %d bytes, at most %d fit: "+
			"shorten MeshAddr (%d bytes), AdminAddr (%d) or Version (%d)",
			len(buf), memberlist.MetaMaxSize, len(w.MeshAddr), len(w.AdminAddr), len(w.Version))
	}
	return buf, nil
}

// decodeMeta is the inverse of encodeMeta; it refuses what it cannot read whole.
func decodeMeta(b []byte) (w wireMeta, err error) {
	if len(b) == 0 {
		return w, errors.New("decode node metadata: it is empty")
	}
	if b[0] != metaFormat {
		return w, fmt.Errorf("decode node metadata: format %d, this version reads %d only",
			b[0], metaFormat)
	}
	if err := codec.NewDecoderBytes(b[1:], metaHandle()).Decode(&w); err != nil {
		return wireMeta{}, fmt.Errorf("decode node metadata: %w", err)
	}
	return w, nil
}

// metaHandle selects the newer format of msgpack, which tells strings from bytes.
func metaHandle() *codec.MsgpackHandle { return &codec.MsgpackHandle{WriteExt: true} }
