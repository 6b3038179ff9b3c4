package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
	"github.com/bmqelect/bmqelect/internal/lab/incident"
	labreport "github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// incidentOptions are the flags of `record-incident`.
type incidentOptions struct {
	remote.Cluster
	incident.Options
	from, to    string
	since       time.Duration
	dirs        []string
	output      string
	seeds       int
	patience    time.Duration
	out, errOut io.Writer
}

// outcome is what `record-incident --json` prints.
type outcome struct {
	Scenario string   `json:"scenario"`
	Report   string   `json:"report"`
	Same     bool     `json:"same"`
	Seed     uint64   `json:"seed"`
	Tried    int      `json:"tried"`
	Doubts   []string `json:"doubts,omitempty"`
}

func recordIncidentCommand() *cobra.Command {
	var o incidentOptions
	cmd := &cobra.Command{
		Use:   "record-incident",
		Short: "Make a scenario of what happened lately, and replay it",
		Long: "Collect what the nodes recorded, find out what went wrong, and write a scenario\n" +
			"that shows it again: incident.yaml for 'bmqnode replay', incident.html for a\n" +
			"browser. Cuts and pauses follow from what the nodes saw of each other. The file\n" +
			"is written for the simulator: with --live, real processes may elect others.\n\n" +
			"A node that does not answer: copy its data directory's recording.log* and name\n" +
			"the folder. Exit status: 1 if the simulator shows other leaders, reasons or\n" +
			"ends.",
		Example: "  bmqnode record-incident --since 2h -o /tmp/last-night\n" +
			"  bmqnode record-incident --from '2026-01-02 02:10' --to '2026-01-02 02:20'",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out, o.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.run(cmd.Context())
		},
	}
	o.Cluster.Register(cmd.Flags())
	cmd.Flags().StringVar(&o.Group, "group", cluster.DefaultGroup, "the election that is meant")
	completeNodes(cmd, &o.Cluster, 0) // before --to, which takes no node here
	o.register(cmd.Flags())
	return cmd
}

func (o *incidentOptions) register(f *pflag.FlagSet) {
	f.DurationVar(&o.since, "since", 30*time.Minute, "how far back to look")
	f.StringVar(&o.from, "from", "", "begin, instead of --since: RFC 3339, or '2006-01-02 15:04' here")
	f.StringVar(&o.to, "to", "", "end, likewise (default: now)")
	f.StringSliceVar(&o.dirs, "data-dir", nil,
		"data directory of a node that does not answer; may be repeated")
	f.StringVarP(&o.output, "output", "o", ".", "folder to write to")
	f.IntVar(&o.seeds, "seeds", 1000, "random choices of the simulator to try, at most")
	f.DurationVar(&o.patience, "timeout", 30*time.Second, "longest search for one that fits")
}

// errOther is the error if the simulator shows something else.
var errOther = errors.New("the simulator does not show the same leaders for the same reasons")

func (o *incidentOptions) run(ctx context.Context) error {
	if err := o.window(); err != nil {
		return config.Usage(err)
	}
	sources, err := o.collect(ctx)
	if err != nil {
		return err
	}
	in, err := incident.Infer(sources, o.Options)
	if err != nil {
		return err
	}
	searching, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	replayed, err := in.Replay(searching, o.seeds)
	if err != nil {
		return err
	}
	result := outcome{
		Scenario: filepath.Join(o.output, "incident.yaml"),
		Report:   filepath.Join(o.output, "incident.html"),
		Same:     replayed.Same, Seed: replayed.Seed, Tried: replayed.Tried, Doubts: in.Doubts,
	}
	if err := o.write(&result, in, replayed.Run); err != nil {
		return err
	}
	if o.JSON {
		err = printJSON(o.out, result)
	} else if err = in.Report(o.out, &replayed); err == nil {
		_, err = fmt.Fprintf(o.out, "Wrote %s and %s\n", result.Scenario, result.Report)
	}
	if err == nil && !result.Same {
		err = errOther
	}
	return err
}

// window reads which time is meant.
func (o *incidentOptions) window() (err error) {
	o.To = time.Now()
	if o.to != "" {
		if o.To, err = parseTime("to", o.to); err != nil {
			return err
		}
	}
	o.From = o.To.Add(-o.since)
	if o.from != "" {
		if o.From, err = parseTime("from", o.from); err != nil {
			return err
		}
	}
	switch {
	case !o.From.Before(o.To):
		return fmt.Errorf("the time begins at %s, but must begin before its end, %s",
			o.From.Format(time.RFC3339), o.To.Format(time.RFC3339))
	case o.seeds < 1:
		return fmt.Errorf("--seeds is %d, but must be 1 or more", o.seeds)
	}
	return nil
}

func parseTime(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--%s is %q, but must be a time such as 2026-01-02T02:10:00Z, or "+
		"'2026-01-02 02:10' in the time zone of this machine", flag, text)
}

// collect gets the recordings of the nodes that answer, and those of the directories.
func (o *incidentOptions) collect(ctx context.Context) (sources []incident.Source, err error) {
	recordings, answers, err := o.Recordings(ctx)
	if err != nil && len(o.dirs) == 0 {
		return nil, err
	}
	for _, a := range answers {
		if r, ok := recordings[a.Node]; ok {
			sources = append(sources, incident.Source{
				Node: string(a.Node), Records: r.Records, Damaged: r.Damaged, Alive: true,
			})
		} else if len(o.dirs) == 0 {
			fmt.Fprintf(o.errOut, "without %s, whose data directory you can name with --data-dir: %s\n",
				a.Node, a.Error)
		}
	}
	for _, dir := range o.dirs {
		records, damaged, err := recording.Read(dir, recording.Recording)
		if err == nil && len(records) == 0 {
			err = fmt.Errorf("nothing is recorded in %s: there is no %s, or nothing in it", dir,
				recording.Recording)
		}
		if err != nil {
			return nil, err
		}
		s := incident.Source{Node: records[0].Node, Records: records, Damaged: damaged}
		answered := func(other incident.Source) bool { return other.Node == s.Node }
		if !slices.ContainsFunc(sources, answered) {
			sources = append(sources, s)
		}
	}
	return sources, nil
}

func (o *incidentOptions) write(to *outcome, in *incident.Incident, run verdict.Run) error {
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to.Scenario, in.Text, 0o644); err != nil {
		return err
	}
	page, err := os.Create(to.Report)
	if err != nil {
		return err
	}
	return errors.Join(labreport.HTML(page, []verdict.Run{run}), page.Close())
}
