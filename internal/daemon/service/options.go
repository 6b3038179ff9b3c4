package service

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// RunOptions are the options of `run`: those of a node, and which algorithm it shows.
type RunOptions struct {
	config.Options
	Algorithm string // another one than the elector's, to show it; "" for that

	Algorithms []string // names that CheckAlgorithm accepts, for the help
	// CheckAlgorithm says what is wrong with Algorithm's name.
	CheckAlgorithm func(name string) error
}

// Register adds the flags.
func (o *RunOptions) Register(f *pflag.FlagSet) {
	f.StringVar(&o.Algorithm, "algorithm", "", "elect by another algorithm, to show it: no leases, "+
		"no fencing, no guarded work; needs --rehearsal; one of "+strings.Join(o.Algorithms, ", "))
	o.Options.Register(f)
}

// Resolve returns the node's configuration, or every mistake in the options, as a
// config.UsageError.
func (o *RunOptions) Resolve() (cluster.Config, error) {
	cfg, err := o.Options.Resolve()
	return cfg, config.Usage(errors.Join(err, o.checkAlgorithm(cfg)))
}

// checkAlgorithm keeps a demonstration away from all that acts on who leads.
func (o *RunOptions) checkAlgorithm(cfg cluster.Config) error {
	if o.Algorithm == "" {
		return nil
	}
	errs := []error{o.CheckAlgorithm(o.Algorithm)}
	if cfg.Faults == nil {
		errs = append(errs, errors.New("--algorithm shows an election and serves nobody: "+
			"it needs --rehearsal"))
	}
	if o.Hooks.OnLeader != "" || o.Hooks.OnFollower != "" {
		errs = append(errs, errors.New("--on-leader and --on-follower must be left out with "+
			"--algorithm: its leaders have no lease, so nothing may act on who leads"))
	}
	if len(o.Groups) > 0 {
		errs = append(errs, errors.New("--groups must be left out with --algorithm, which runs in the "+
			"default election alone"))
	}
	return errors.Join(errs...)
}
