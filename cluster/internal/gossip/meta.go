package gossip

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
)

// metaFormat is the first byte of encoded metadata. The fields after it are a
// map, so a field can be added without a new format.
const metaFormat = 1

// wireMeta is Meta as it travels. Names are short because 512 bytes must hold all.
type wireMeta struct {
	MeshAddr  string `codec:"m"`
	AdminAddr string `codec:"a,omitempty"`
	Version   string `codec:"v,omitempty"`
	Voter     bool   `codec:"o,omitempty"`
	Candidate bool   `codec:"c,omitempty"`
	Priority  int    `codec:"p,omitempty"`
	// Leaving is set shortly before a graceful leave: memberlist does not tell its
	// listeners whether a member left or died.
	Leaving bool `codec:"l,omitempty"`
}

func (m Meta) wire(leaving bool) wireMeta {
	return wireMeta{m.MeshAddr, m.AdminAddr, m.Version, m.Voter, m.Candidate, m.Priority, leaving}
}

func (w wireMeta) meta() Meta {
	return Meta{w.MeshAddr, w.AdminAddr, w.Version, w.Voter, w.Candidate, w.Priority}
}

// encodeMeta returns the wire form of w, or an error if it is too large.
func encodeMeta(w wireMeta) ([]byte, error) {
	buf := []byte{metaFormat}
	var body []byte
	if err := codec.NewEncoderBytes(&body, metaHandle()).Encode(w); err != nil {
		return nil, fmt.Errorf("encode node metadata: %w", err)
	}
	buf = append(buf, body...)
	if len(buf) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("node metadata takes %d bytes, at most %d fit: shorten MeshAddr (%d bytes), AdminAddr (%d) or Version (%d)",
			len(buf), memberlist.MetaMaxSize, len(w.MeshAddr), len(w.AdminAddr), len(w.Version))
	}
	return buf, nil
}

// decodeMeta is the inverse of encodeMeta; it refuses what it cannot read whole.
func decodeMeta(b []byte) (wireMeta, error) {
	if len(b) == 0 {
		return wireMeta{}, errors.New("decode node metadata: it is empty")
	}
	if b[0] != metaFormat {
		return wireMeta{}, fmt.Errorf("decode node metadata: format %d, this version reads %d only", b[0], metaFormat)
	}
	var w wireMeta
	if err := codec.NewDecoderBytes(b[1:], metaHandle()).Decode(&w); err != nil {
		return wireMeta{}, fmt.Errorf("decode node metadata: %w", err)
	}
	return w, nil
}

func metaHandle() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	return h
}
