package doctor

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/bmqelect/bmqelect/cluster"
)

// Explain adds to the error of a node that cannot start what to do about it, and the
// entry of docs/errors.md. It returns an error that it does not know as it is.
func Explain(err error) error {
	for _, known := range []struct {
		err  error
		kind Kind
	}{
		{syscall.EADDRINUSE, PortTaken},
		{syscall.EADDRNOTAVAIL, AddressForeign},
		{cluster.ErrDirInUse, DataDirInUse},
		{cluster.ErrDirDamaged, DataDirDamaged},
		{cluster.ErrDirOwner, DataDirOwner},
		{cluster.ErrNotDurable, DataDirUnusable},
	} {
		if errors.Is(err, known.err) {
			return fmt.Errorf("%w; %s; see %s", err, catalogue[known.kind].fix, See(known.kind))
		}
	}
	return err
}
