package netmesh

import (
	"errors"
	"fmt"
	"net"

	"github.com/bmqelect/bmqelect/elector"
)

// violations collects what is wrong with a Config.
type violations []error

func (v *violations) check(ok bool, format string, args ...any) {
	if !ok {
		*v = append(*v, fmt.Errorf(format, args...))
	}
}

func (v *violations) name(field, value string) {
	bad := badName(value)
	v.check(bad == "", "%s: %s; want 1 to %d bytes", field, bad, MaxNameLength)
}

func (v *violations) node(field string, id elector.NodeID) {
	bad := elector.NameProblem(id)
	v.check(bad == "", "%s: %q: the name is %s", field, id, bad)
}

func (v *violations) address(field, value string) {
	_, _, err := net.SplitHostPort(value)
	v.check(err == nil, "%s: %q is not host:port: %v", field, value, err)
}

func (v *violations) join() error {
	if err := errors.Join(*v...); err != nil {
		return fmt.Errorf("netmesh config: %w", err)
	}
	return nil
}
