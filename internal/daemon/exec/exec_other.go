//go:build !linux

package exec

import (
	"context"
	"errors"

	"github.com/bmqelect/bmqelect/cluster"
)

// Run fails: only on Linux can a command be kept from outliving a lease.
func Run(context.Context, cluster.Config, *Options) error {
	return errors.New("commands can be supervised on Linux only")
}

// Main fails likewise.
func Main([]string) int { return 1 }
