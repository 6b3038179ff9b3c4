package doctor

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/store"
)

// Explain adds to the error of a node that could not start who is in its way, if
// that can be seen, and where docs/errors.md tells what to do. An error that it does
// not know it returns as it is. err must not be nil.
func Explain(err error, cfg cluster.Config) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w%s; see %s", err, heldBy(err), See(PortTaken))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return seen(err, AddressForeign)
	case errors.Is(err, store.ErrLocked):
		return seen(err, DataDirInUse)
	case errors.Is(err, store.ErrCorrupt):
		return seen(err, DataDirDamaged)
	case errors.Is(err, store.ErrNotDurable):
		return seen(err, DataDirUnusable)
	case ofAnother(cfg):
		return seen(err, DataDirOwner)
	}
	return err
}

func seen(err error, k Kind) error { return fmt.Errorf("%w; see %s", err, See(k)) }

// heldBy says who has the port that could not be bound.
func heldBy(err error) string {
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil {
		return ""
	}
	if owner := PortOwner(op.Net, op.Addr.String()); owner != "" {
		return ": the port is held by " + owner
	}
	return ""
}

// ofAnother reports whether the data directory is surely another node's.
func ofAnother(cfg cluster.Config) bool {
	if !holdsState(cfg.DataDir) {
		return false
	}
	who, err := OwnerOf(cfg.DataDir)
	return err == nil && who != ownerIn(cfg)
}
