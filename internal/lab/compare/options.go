package compare

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
)

// Options are those of both commands.
type Options struct {
	Algorithms []string // by name
	Output     string   // a file or a folder; "" is Out
	Out, Err   io.Writer
}

func (o *Options) register(f *pflag.FlagSet, algorithms, output string) {
	f.StringSliceVar(&o.Algorithms, "algorithm", nil,
		algorithms+": "+strings.Join(replay.AlgorithmNames(), ", "))
	f.StringVarP(&o.Output, "output", "o", "", output)
}

// algorithms are those of the names, or others if there is no name.
func (o *Options) algorithms(others ...algorithm.Algorithm) ([]algorithm.Algorithm, error) {
	if len(o.Algorithms) == 0 {
		return others, nil
	}
	chosen, err := replay.SelectAlgorithms(o.Algorithms...)
	if err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	return chosen, nil
}

// mistakes are what is wrong with the options of a command.
type mistakes []error

func (m *mistakes) want(ok bool, text string, args ...any) {
	if !ok {
		*m = append(*m, fmt.Errorf(text, args...))
	}
}
