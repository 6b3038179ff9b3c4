package cluster

import "github.com/bmqelect/bmqelect/cluster/internal/store"

// Errors of a data directory. Those of Start and CheckDataDir match them with errors.Is.
var (
	// ErrDirInUse says that another process uses it, or another node of this one.
	ErrDirInUse = store.ErrLocked
	// ErrDirDamaged says that the state in it is damaged or gone.
	ErrDirDamaged = store.ErrCorrupt
	// ErrDirNewer says that a newer release has written the state in it.
	ErrDirNewer = store.ErrNewer
	// ErrDirOwner says that it belongs to another node, or to a node of another cluster.
	ErrDirOwner = store.ErrOwner
	// ErrNotDurable says that a write did not reach the disk.
	ErrNotDurable = store.ErrNotDurable
)

// CheckDataDir returns why Start could not use cfg.DataDir now, or nil. It takes the
// directory for a moment and changes nothing that lasts. A directory that is not there
// yet must be one that Start can make.
func CheckDataDir(cfg Config) error {
	cfg = cfg.withDefaults()
	return store.Check(cfg.DataDir, store.Owner{Cluster: cfg.Cluster, Node: string(cfg.Node)})
}
