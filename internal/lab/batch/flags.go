package batch

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
)

// Register adds the flags of the command `replay` that set an option as it is.
func (o *Options) Register(f *pflag.FlagSet) {
	f.BoolVar(&o.Live, "live", false, "play on real processes on loopback, in real time")
	f.IntVar(&o.Runs, "runs", 1, "runs under consecutive seeds, each of which must hold")
	f.StringArrayVar(&o.Set, "set", nil,
		"override a setting of the file, as in elector.lease=2s; may be repeated")
	f.BoolVar(&o.Compare, "compare", false,
		"play variants side by side, to see what differs; exits with 0 whatever did not hold")
	f.StringArrayVar(&o.Variants, "variant", []string{"scouting=true", "scouting=false"},
		"a variant for --compare: settings as for --set, separated by commas")
	f.StringSliceVar(&o.Algorithms, "algorithm", nil,
		"play another election algorithm, or several with --compare: "+strings.Join(replay.AlgorithmNames(), ", "))
	f.StringVar(&o.Format, "format", "", "text, json (one event per line), html (one file, opens "+
		"anywhere) or svg (default: by the ending of --output, or else text)")
	f.StringVarP(&o.Output, "output", "o", "", "write there instead of the standard output; "+
		"a folder for html or svg of several files")
	f.IntSliceVar(&o.Reduced.Drop, "drop", nil,
		"leave these steps of the timeline out, counted from 1; expectations are not judged then")
	f.DurationVar(&o.Reduced.Until, "until", 0, "end the run then (0: the file's duration)")
	f.IntVar(&o.Jobs, "jobs", 4, "files played at the same time")
	f.IntVar(&o.BasePort, "base-port", 20_400, "first port to try with --live")
}
