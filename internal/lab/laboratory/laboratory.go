// Package laboratory plays the comparison of all election algorithms and writes what came
// out: a file of figures, the page docs/laboratory.md and its pictures. Page and pictures are
// made of that file, and of one run of each scenario that the page cites.
package laboratory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/internal/lab/compare"
	"github.com/bmqelect/bmqelect/internal/lab/compare/trial"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// Files, from the top of the repository.
const (
	figures  = "testdata/laboratory.csv"
	page     = "docs/laboratory.md"
	pictures = "docs/pictures"
)

// LeastSeeds is the fewest for figures that are kept.
const LeastSeeds = 200

// Options say what is played.
type Options struct {
	Seeds      int      // of each cell, from 1 on
	Algorithms []string // by name; none for all
	Topologies []string // likewise
	// Output is the top of a repository: what was found is written there, unless it is "".
	Output string
	// Redraw plays no cell, and writes page and pictures of the file that is there.
	Redraw   bool
	Out, Err io.Writer // Out gets the summary, Err how far it is
}

// Register adds the flags of the command `lab`.
func (o *Options) Register(f *pflag.FlagSet) {
	f.IntVar(&o.Seeds, "seeds", LeastSeeds, "runs of each algorithm in each case")
	f.StringSliceVar(&o.Algorithms, "algorithm", nil,
		"only these: "+strings.Join(replay.AlgorithmNames(), ", "))
	f.StringSliceVar(&o.Topologies, "topology", nil, "only these: "+strings.Join(topologies(), ", "))
	f.StringVarP(&o.Output, "output", "o", "", "write "+figures+", "+page+" and its pictures "+
		"below this `folder`, the top of a checkout of bmqelect (default: write no file)")
	f.BoolVar(&o.Redraw, "redraw", false,
		"play nothing: write the page and pictures of the figures that --output has")
}

// Check names everything that is wrong, by the flags of the command `lab`.
func (o *Options) Check() error {
	_, err := o.topologies()
	errs := []error{err}
	if _, err := replay.SelectAlgorithms(o.Algorithms...); err != nil {
		errs = append(errs, fmt.Errorf("--algorithm: %w", err))
	}
	if o.Seeds < 1 || o.Seeds > 1_000_000 {
		errs = append(errs, fmt.Errorf("--seeds is %d, but must be 1 to 1000000", o.Seeds))
	}
	part := len(o.Algorithms) > 0 || len(o.Topologies) > 0
	if o.Output != "" && !o.Redraw && (part || o.Seeds < LeastSeeds) {
		errs = append(errs, fmt.Errorf("--output is for the whole comparison: without --algorithm "+
			"and --topology, and with at least %d seeds", LeastSeeds))
	}
	if o.Redraw && o.Output == "" {
		errs = append(errs, errors.New("--redraw needs --output"))
	}
	return errors.Join(errs...)
}

func (o *Options) topologies() (chosen []trial.Topology, err error) {
	if len(o.Topologies) == 0 {
		return trial.Topologies, nil
	}
	for _, name := range o.Topologies {
		i := slices.IndexFunc(trial.Topologies, func(t trial.Topology) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--topology: %q is none, but these are: %s", name,
				strings.Join(topologies(), ", "))
		}
		chosen = append(chosen, trial.Topologies[i])
	}
	return chosen, nil
}

// topologies are the names of all.
func topologies() (names []string) {
	for _, t := range trial.Topologies {
		names = append(names, t.Name)
	}
	return names
}

// Run plays and writes what o says. Call Check first.
func Run(ctx context.Context, o Options) error {
	file := filepath.Join(o.Output, figures)
	var rows []compare.Row
	var err error
	if o.Redraw {
		rows, err = read(file)
	} else {
		rows, err = o.play(ctx)
	}
	if err != nil {
		return err
	}
	if o.Output == "" {
		return report.LaboratoryTable(o.Out, rows)
	}
	if !o.Redraw {
		if err := write(file, func(w io.Writer) error { return compare.Write(w, rows) }); err != nil {
			return err
		}
		// What is drawn is what the file says, to its accuracy.
		if rows, err = read(file); err != nil {
			return err
		}
	}
	files, err := Files(rows, o.Output)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, write(filepath.Join(o.Output, name), func(w io.Writer) error {
			_, err := w.Write(files[name])
			return err
		}))
	}
	return err
}

func (o *Options) play(ctx context.Context) ([]compare.Row, error) {
	topologies, _ := o.topologies()
	algorithms := replay.Algorithms()
	if len(o.Algorithms) > 0 {
		algorithms, _ = replay.SelectAlgorithms(o.Algorithms...)
	}
	cells := trial.Cells(topologies, trial.Networks, algorithms)
	return trial.Play(ctx, cells, o.Seeds, func(done int) {
		if share := len(cells)/20 + 1; done%share == 0 || done == len(cells) {
			fmt.Fprintf(o.Err, "%d of %d cells, of %d runs each\n", done, len(cells), o.Seeds)
		}
	})
}

// Files makes the page and its pictures from rows. The keys are their paths in a repository. Files
// plays the scenarios of that repository that the page cites.
func Files(rows []compare.Row, repository string) (map[string][]byte, error) {
	losses, err := compare.Losses(rows)
	if err != nil {
		return nil, err
	}
	shown, err := show(repository)
	if err != nil {
		return nil, err
	}
	var about []string
	for _, t := range trial.Topologies {
		about = append(about, t.Name+": "+t.About)
	}
	text, err := report.LaboratoryPage(rows, losses, shown)
	files := map[string][]byte{page: text}
	for name, picture := range report.LaboratoryPlots(rows, about) {
		files[filepath.Join(pictures, name)] = picture
	}
	return files, err
}

func read(file string) ([]compare.Row, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := compare.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}

func write(file string, content func(io.Writer) error) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return content(f)
}
