package batch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

var formats = map[string]func(io.Writer, []verdict.Run, report.TextOptions) error{
	"text": report.Text,
	"json": plain(report.JSON),
	"svg":  plain(report.SVG),
	"html": plain(report.HTML),
}

func plain(
	f func(io.Writer, []verdict.Run) error,
) func(io.Writer, []verdict.Run, report.TextOptions) error {
	return func(w io.Writer, runs []verdict.Run, _ report.TextOptions) error { return f(w, runs) }
}

// write writes the runs of all jobs. A single scenario is shown in full; several are a
// line each, those that failed in full before them, or a file each if they are pictures.
func (b *Batch) write(results [][]verdict.Run) error {
	format := formats[b.Format]
	var all []verdict.Run
	for _, runs := range results {
		all = append(all, runs...)
	}
	switch {
	case len(b.jobs) == 1, b.Format == "json":
		return b.to(b.Output, func(w io.Writer) error { return format(w, all, b.textOptions()) })
	case b.Format == "text":
		return b.to(b.Output, func(w io.Writer) error {
			for _, r := range all {
				if r.Held() || b.Compare {
					continue
				}
				if err := report.Text(w, []verdict.Run{r}, b.textOptions()); err != nil {
					return err
				}
				fmt.Fprintln(w)
			}
			return report.Summary(w, all, b.textOptions())
		})
	}
	for i, runs := range results {
		if len(runs) == 0 {
			continue
		}
		name := filepath.Base(b.jobs[i].variants[0].File)
		path := filepath.Join(b.Output, strings.TrimSuffix(name, filepath.Ext(name))+"."+b.Format)
		err := b.to(path, func(w io.Writer) error { return format(w, runs, b.textOptions()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// to lets f write to a file, or to the standard output if path is "".
func (b *Batch) to(path string, f func(io.Writer) error) (err error) {
	if path == "" {
		return f(b.Out)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return f(file)
}

// textOptions fit the terminal, or 100 columns if there is none.
func (b *Batch) textOptions() report.TextOptions {
	o := report.TextOptions{Width: 100}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && b.Output == "" {
		o.Width, o.Color = width, !color.NoColor
	}
	return o
}

// shrink looks for the least that breaks the same invariant, and says how to see it.
func (b *Batch) shrink(sc *scenario.Scenario, run verdict.Run) {
	if len(run.History.Broken) == 0 || b.Live {
		return
	}
	seed := run.History.Seed
	r, small, ok := replay.Shrink(sc, seed)
	if !ok {
		return
	}
	fmt.Fprintf(b.Err, "%s: an invariant is broken under seed %d; the least that breaks it:\n",
		sc.File, seed)
	for _, m := range small.History.Marks {
		fmt.Fprintf(b.Err, "  %-8s %s\n", m.At, m.Text)
	}
	cmd := fmt.Sprintf("bmqnode replay %s --seed %d", sc.File, seed)
	flag := func(name string, values any) {
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ","), "[]")
		if list != "" {
			cmd += " --" + name + " " + list
		}
	}
	flag("drop", r.Drop)
	flag("without", r.Without)
	if r.Until > 0 {
		flag("until", r.Until)
	}
	fmt.Fprintf(b.Err, "%s\nreplay it with:\n  %s\n", small.History.Broken[0], cmd)
}
