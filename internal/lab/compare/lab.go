package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
)

// Files, from the top of the repository.
const (
	figures  = "testdata/laboratory.csv"
	page     = "docs/laboratory.md"
	pictures = "docs/pictures"
)

// LeastSeeds is the fewest for figures that are kept.
const LeastSeeds = 200

// LabOptions say what of the comparison is played; no name is all. Output is the top of a
// repository: what was found is written there, unless it is "". Otherwise Out gets a summary.
type LabOptions struct {
	Options
	Seeds      int      // of each cell, from 1 on
	Topologies []string // by name
	// Redraw plays no cell, and writes page and pictures of the file that is there.
	Redraw bool
}

// Register adds the flags of the command `lab`.
func (o *LabOptions) Register(f *pflag.FlagSet) {
	f.IntVar(&o.Seeds, "seeds", LeastSeeds, "runs of each algorithm in each case")
	o.register(f, "only these", "write "+figures+", "+page+" and its pictures "+
		"below this `folder`, the top of a checkout of bmqelect (default: write no file)")
	f.StringSliceVar(&o.Topologies, "topology", nil,
		"only these: "+strings.Join(topologyNames(), ", "))
	f.BoolVar(&o.Redraw, "redraw", false,
		"play nothing: write the page and pictures of the figures that --output has")
}

// Check names everything that is wrong, by the flags of the command `lab`.
func (o *LabOptions) Check() error {
	_, err := o.algorithms()
	wrong := mistakes{err}
	for _, name := range o.Topologies {
		wrong.want(slices.Contains(topologyNames(), name),
			"--topology: %q is none, but these are: %s", name, strings.Join(topologyNames(), ", "))
	}
	wrong.want(o.Seeds >= 1 && o.Seeds <= 1_000_000,
		"--seeds is %d, but must be 1 to 1000000", o.Seeds)
	part := len(o.Algorithms) > 0 || len(o.Topologies) > 0
	wrong.want(o.Output == "" || o.Redraw || !part && o.Seeds >= LeastSeeds,
		"--output is for the whole comparison: without --algorithm and --topology, and with at "+
			"least %d seeds", LeastSeeds)
	wrong.want(!o.Redraw || o.Output != "", "--redraw needs --output")
	return errors.Join(wrong...)
}

func topologyNames() []string {
	return namesOf(Topologies, func(t Topology) string { return t.Name })
}

// Lab plays and writes what o says. Call Check first.
func Lab(ctx context.Context, o LabOptions) error {
	file := filepath.Join(o.Output, figures)
	if !o.Redraw {
		rows, err := o.play(ctx)
		if err == nil && o.Output == "" {
			return errors.Join(writeTable(o.Out, equalRows(rows)), writeTable(o.Out, ownRows(rows)))
		}
		if err == nil {
			err = o.to(file, func(w io.Writer) error { return Write(w, rows) })
		}
		if err != nil {
			return err
		}
	}
	text, err := os.ReadFile(file) // what is drawn is what the file says, to its accuracy
	if err != nil {
		return err
	}
	rows, err := Read(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	files, err := Files(rows, o.Output)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, o.to(filepath.Join(o.Output, name), func(w io.Writer) error {
			_, err := w.Write(files[name])
			return err
		}))
	}
	return err
}

func (o *LabOptions) play(ctx context.Context) ([]Row, error) {
	// Runs leave much garbage and little else: collecting it took a third of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	algorithms, err := o.algorithms(replay.Algorithms()...)
	if err != nil {
		return nil, err
	}
	cells := slices.DeleteFunc(Cells(Topologies, Networks, algorithms), func(c Cell) bool {
		return len(o.Topologies) > 0 && !slices.Contains(o.Topologies, c.Topology.Name)
	})
	return Play(ctx, cells, o.Seeds, func(done int) {
		if share := len(cells)/20 + 1; done%share == 0 || done == len(cells) {
			fmt.Fprintf(o.Err, "%d of %d cells, of %d runs each\n", done, len(cells), o.Seeds)
		}
	})
}
