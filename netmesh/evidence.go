package netmesh

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/bmqelect/bmqelect/elector"
)

// evidenceOf says what an error of a connection or of a dial shows about the peer.
func evidenceOf(err error) elector.Evidence {
	var refused *refusal
	var timeout net.Error
	switch {
	case err == nil:
		return elector.EvidenceNone
	case errors.As(err, &refused):
		return elector.EvidenceLocal // the rules, not the network, ended it
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return elector.EvidenceEOF
	case errors.Is(err, syscall.ECONNREFUSED):
		return elector.EvidenceRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return elector.EvidenceTimeout
	case errors.Is(err, net.ErrClosed):
		return elector.EvidenceLocal
	}
	// ECONNRESET, EPIPE and whatever else breaks a connection: the connection
	// is gone, and that is all it shows.
	return elector.EvidenceReset
}
