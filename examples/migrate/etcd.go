package migrate

import (
	"context"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// campaign leads once.
func campaign(
	ctx context.Context, e *cluster.Election, work func(context.Context, lsn.LSN) error,
) error {
	// snippet: etcd
	l, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	defer l.Release()                                // last: the work has stopped
	leads, cancel := context.WithCancel(l.Context()) // ends with the leadership
	defer cancel()
	defer context.AfterFunc(ctx, cancel)() // and with ctx
	token, err := l.NextLSN()
	if err != nil {
		return err
	}
	return work(leads, token)
	// end
}
