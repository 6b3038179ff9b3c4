package netmesh

import (
	"errors"
	"fmt"
	"io"

	"github.com/bmqelect/bmqelect/elector"
)

// Reason says why a connection did not become a link, or why a link was closed.
type Reason uint8

// The reasons that other packages act on. Reasons lists all.
const (
	reasonNone             Reason = iota
	reasonSilent                  // connected and said nothing in time
	reasonVanished                // ended before the handshake was complete: a port scanner
	ReasonGarbage                 // sent what is no frame or message of this protocol
	ReasonOversized               // announced a frame above the limit
	ReasonVersion                 // no version of the protocol in common
	ReasonForeignCluster          // member of another cluster
	ReasonDuplicateName           // same node ID, another data directory
	ReasonSelf                    // this very node
	ReasonWrongNode               // another node than the one that was dialed
	reasonStale                   // an older boot, or an older connection, than is known already
	reasonAlreadyConnected        // another connection between the two is kept
	reasonCrowded                 // too many connections or members at a time
	reasonClosing                 // the node is leaving
	reasonRemoved                 // no member any more
	reasonRequested               // Disconnect was called
	reasonSuperseded              // replaced by a newer connection
	reasonTimeout                 // silent or blocked for too long
	ReasonProxied                 // a proxy or NAT rewrites the addresses of an evidence connection
	ReasonCopied                  // another process runs, or ran, on a copy of its data directory
	ReasonTLS                     // no certificate that is accepted, or TLS at one end only
	ReasonOutdated                // its data directory was replaced by another one, and put back
	reasonEnd
)

var reasonNames = [reasonEnd]string{
	"none", "silent", "vanished", "garbage", "oversized", "version", "foreign-cluster",
	"duplicate-name", "self", "wrong-node", "stale", "already-connected", "crowded", "closing",
	"removed", "requested", "superseded", "timeout", "proxied", "data-dir-copied",
	"tls", "data-dir-outdated",
}

// twoProcesses are the reasons whose advice may cost a data directory: they must be certain.
var twoProcesses = []Reason{ReasonDuplicateName, ReasonCopied, ReasonOutdated}

// Reasons returns every reason for which connections are counted.
func Reasons() []Reason {
	all := make([]Reason, 0, reasonEnd-1)
	for r := reasonNone + 1; r < reasonEnd; r++ {
		all = append(all, r)
	}
	return all
}

// String returns the reason's name, as used in logs and metrics.
func (r Reason) String() string {
	if r < reasonEnd {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// refusal is a handshake that failed by a rule, here or at the peer.
type refusal struct {
	Reason Reason
	Text   string // names both sides' values
	byPeer bool

	endsLink bool // no handshake failed: the peer has ended its link
}

func (r *refusal) Error() string {
	what := "refused"
	if r.endsLink {
		what = "goodbye"
	} else if r.byPeer {
		what = "refused by the peer"
	}
	return fmt.Sprintf("%s (%s): %s", what, r.Reason, r.Text)
}

func refuse(reason Reason, format string, args ...any) *refusal {
	return &refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// reasonOf says what a failed handshake counts as.
func reasonOf(err error) Reason {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ReasonGarbage // a truncated frame
	case evidenceOf(err) == elector.EvidenceTimeout:
		return reasonSilent
	}
	return reasonVanished
}
