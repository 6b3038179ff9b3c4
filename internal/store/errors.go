package store

import "errors"

var (
	// ErrNotDurable says that a write did not reach the disk, or that an
	// earlier one did not. The node must stop taking part in elections.
	ErrNotDurable = errors.New("not durable")

	// ErrCorrupt says that the state in the data directory is damaged or gone.
	ErrCorrupt = errors.New("durable state is corrupt")

	// ErrLocked says that another process has the data directory, or another Store
	// of this one.
	ErrLocked = errors.New("data directory is in use")

	// ErrOwner says that the data directory belongs to another node.
	ErrOwner = errors.New("wrong data directory")
)

// corruptAdvice is part of every error about damaged state, because its reader
// is tempted to do the one thing that breaks elections: start over at term 0.
const corruptAdvice = "do not restore an older copy: the node could vote twice in one term; " +
	"move the data directory away, make sure that the other voters have a leader, then start this node with an empty one"
