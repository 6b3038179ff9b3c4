package compare

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// formats are the forms of a report, by the ending of a file.
var formats = map[string]string{
	".txt": "text", ".json": "json", ".jsonl": "json", ".svg": "svg", ".html": "html", "": "text",
}

var forms = map[string]func(io.Writer, []verdict.Run) error{
	"json": report.JSON, "svg": report.SVG, "html": report.HTML,
}

// chooseFormat takes the format from the ending of the output if none was given.
func (o *ReplayOptions) chooseFormat() error {
	named, known := formats[filepath.Ext(o.Output)]
	switch {
	case o.Format == "" && !known:
		return fmt.Errorf("--output is %q, but must end in .txt, .json, .jsonl, .svg or .html, or "+
			"go with --format", o.Output)
	case o.Format == "":
		o.Format = named
	case !slices.Contains(slices.Collect(maps.Values(formats)), o.Format):
		return fmt.Errorf("--format is %q, but must be text, json, html or svg", o.Format)
	case known && filepath.Ext(o.Output) != "" && named != o.Format:
		return fmt.Errorf("--format is %s, but --output is %q: leave one of them out, or let them agree",
			o.Format, o.Output)
	}
	return nil
}

// format writes runs in the form that was asked for.
func (b *Replay) format(w io.Writer, runs []verdict.Run) error {
	if form := forms[b.Format]; form != nil {
		return form(w, runs)
	}
	return report.Text(w, runs, b.textOptions())
}

// write writes the runs of all jobs. A single scenario is shown in full; several are a
// line each, those that failed in full before them, or a file each if they are pictures.
func (b *Replay) write(results [][]verdict.Run) error {
	var all []verdict.Run
	for _, runs := range results {
		all = append(all, runs...)
	}
	switch {
	case len(b.jobs) == 1, b.Format == "json":
		return b.to(b.Output, func(w io.Writer) error { return b.format(w, all) })
	case b.Format == "text":
		return b.to(b.Output, func(w io.Writer) error {
			for _, r := range all {
				if r.Held() || b.Compare {
					continue
				}
				if err := b.format(w, []verdict.Run{r}); err != nil {
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
		name := filepath.Base(b.jobs[i][0].File)
		path := filepath.Join(b.Output, strings.TrimSuffix(name, filepath.Ext(name))+"."+b.Format)
		err := b.to(path, func(w io.Writer) error { return b.format(w, runs) })
		if err != nil {
			return err
		}
	}
	return nil
}

// to lets f write to a file, or to the standard output if path is "".
func (o *Options) to(path string, f func(io.Writer) error) (err error) {
	if path == "" {
		return f(o.Out)
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
func (b *Replay) textOptions() report.TextOptions {
	o := report.TextOptions{Width: 100}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && b.Output == "" {
		o.Width, o.Color = width, !color.NoColor
	}
	return o
}

// shrink looks for the least that breaks the same invariant, and says how to see it. Of other
// algorithms than ours it is not looked for.
func (b *Replay) shrink(v variant, run verdict.Run) {
	if len(run.History.Broken) == 0 || b.Live || v.algorithm.Name != ours.Elector.Name {
		return
	}
	seed := run.History.Seed
	r, small, ok := replay.Shrink(v.Scenario, seed)
	if !ok {
		return
	}
	fmt.Fprintf(b.Err, "%s: an invariant is broken under seed %d; the least that breaks it:\n",
		v.File, seed)
	for _, m := range small.History.Marks {
		fmt.Fprintf(b.Err, "  %-8s %s\n", m.At, m.Text)
	}
	cmd := fmt.Sprintf("bmqnode replay %s --seed %d", v.File, seed)
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
