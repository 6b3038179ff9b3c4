// Package record is the command record-incident: it collects what the nodes of a cluster
// recorded, lets package incident find out what happened, and writes the scenario and its
// report to files.
package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/lab/incident"
	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// Options are the flags of the command.
type Options struct {
	ask.Cluster
	Group    string // the election
	Since    time.Duration
	From, To string   // if set, instead of Since and of now
	Dirs     []string // data directories of nodes that do not answer
	Output   string   // folder
	Seeds    int
	Patience time.Duration // longest search for a seed
	Out, Err io.Writer
}

// outcome is what is printed as JSON.
type outcome struct {
	Scenario string   `json:"scenario"`
	Report   string   `json:"report"`
	Same     bool     `json:"same"`
	Seed     uint64   `json:"seed"`
	Tried    int      `json:"tried"`
	Doubts   []string `json:"doubts,omitempty"`
}

// Run writes the scenario and its report. It fails, too, if the simulator shows other leaders
// or reasons; the files are there then.
func (o *Options) Run(ctx context.Context) error {
	window, err := o.window()
	if err != nil {
		return config.Usage(err)
	}
	sources, err := o.collect(ctx)
	if err != nil {
		return err
	}
	in, err := incident.Infer(sources, window)
	if err != nil {
		return err
	}
	searching, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	replayed, err := in.Replay(searching, o.Seeds)
	if err != nil {
		return err
	}
	result := outcome{
		Scenario: filepath.Join(o.Output, "incident.yaml"),
		Report:   filepath.Join(o.Output, "incident.html"),
		Same:     replayed.Same, Seed: replayed.Seed, Tried: replayed.Tried, Doubts: in.Doubts,
	}
	if err := o.write(&result, in, &replayed); err != nil {
		return err
	}
	if o.JSON {
		err = console.JSON(o.Out, result)
	} else if err = in.Report(o.Out, &replayed); err == nil {
		_, err = fmt.Fprintf(o.Out, "Wrote %s and %s\n", result.Scenario, result.Report)
	}
	if err == nil && !result.Same {
		err = errors.New("the simulator does not show the same leaders for the same reasons")
	}
	return err
}

// window reads which time is meant.
func (o *Options) window() (w incident.Options, err error) {
	w = incident.Options{Group: o.Group, To: time.Now()}
	if o.To != "" {
		w.To, err = parseTime("to", o.To)
	}
	w.From = w.To.Add(-o.Since)
	if o.From != "" && err == nil {
		w.From, err = parseTime("from", o.From)
	}
	switch {
	case err != nil:
	case !w.From.Before(w.To):
		err = fmt.Errorf("the time begins at %s, but must begin before its end, %s",
			w.From.Format(time.RFC3339), w.To.Format(time.RFC3339))
	case o.Seeds < 1:
		err = fmt.Errorf("--seeds is %d, but must be 1 or more", o.Seeds)
	}
	return w, err
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
func (o *Options) collect(ctx context.Context) (sources []incident.Source, err error) {
	recordings, answers, err := o.Recordings(ctx)
	if err != nil && len(o.Dirs) == 0 {
		return nil, err
	}
	for _, a := range answers {
		if r, ok := recordings[a.Node]; ok {
			sources = append(sources, incident.Source{
				Node: string(a.Node), Records: r.Records, Damaged: r.Damaged, Alive: true,
			})
		} else if len(o.Dirs) == 0 {
			fmt.Fprintf(o.Err, "without %s, whose data directory you can name with --data-dir: %s\n",
				a.Node, a.Error)
		}
	}
	for _, dir := range o.Dirs {
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

func (o *Options) write(to *outcome, in *incident.Incident, r *incident.Replay) error {
	if err := os.MkdirAll(o.Output, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to.Scenario, in.Text, 0o644); err != nil {
		return err
	}
	page, err := os.Create(to.Report)
	if err != nil {
		return err
	}
	return errors.Join(report.Incident(page, r.Seen, r.Run, r.Differ, r.Total), page.Close())
}
