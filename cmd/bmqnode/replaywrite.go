package main

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

// perFile reports whether each scenario gets a file of its own.
func (j *replayJob) perFile() bool {
	return len(j.files) > 1 && (j.format == "html" || j.format == "svg")
}

func (j *replayJob) nameFor(file string) string {
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	return filepath.Join(j.output, base+"."+j.format)
}

// writeAll shows one scenario in full, and several as a list of lines with the
// failed ones in full.
func (j *replayJob) writeAll(jobs []job, runs []verdict.Run) error {
	if len(jobs) == 1 || j.format == "json" {
		return j.write(j.output, runs)
	}
	return j.to(j.output, func(w io.Writer) error {
		for _, r := range runs {
			if !r.Held() && !j.compare {
				if err := report.Text(w, []verdict.Run{r}, j.textOptions()); err != nil {
					return err
				}
				fmt.Fprintln(w)
			}
		}
		return report.Summary(w, runs, j.textOptions())
	})
}

func (j *replayJob) write(path string, runs []verdict.Run) error {
	return j.to(path, func(w io.Writer) error { return replayFormats[j.format](w, runs, j.textOptions()) })
}

// to lets f write to a file, or to the standard output if path is "".
func (j *replayJob) to(path string, f func(io.Writer) error) (err error) {
	if path == "" {
		return f(j.cmd.OutOrStdout())
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

// textOptions fit the terminal, or 100 columns where there is none.
func (j *replayJob) textOptions() report.TextOptions {
	o := report.TextOptions{Width: 100}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && j.output == "" {
		o.Width, o.Color = width, !color.NoColor
	}
	return o
}

// shrink looks for the least that breaks the same invariant, and says how to see
// it.
func (j *replayJob) shrink(sc *scenario.Scenario, run verdict.Run) {
	if len(run.History.Broken) == 0 || j.live {
		return
	}
	seed := run.History.Seed
	r, small, ok := replay.Shrink(sc, seed)
	if !ok {
		return
	}
	w := j.cmd.ErrOrStderr()
	fmt.Fprintf(w, "%s: an invariant is broken under seed %d; the least that breaks it:\n", sc.File, seed)
	for _, m := range small.History.Marks {
		fmt.Fprintf(w, "  %-8s %s\n", m.At, m.Text)
	}
	fmt.Fprintf(w, "%s\nreplay it with:\n  %s\n", small.History.Broken[0], reducedCommand(sc.File, seed, r))
}

// reducedCommand is what one types to see a reduced run.
func reducedCommand(file string, seed uint64, r replay.Reduced) string {
	cmd := fmt.Sprintf("bmqnode replay %s --seed %d", file, seed)
	if len(r.Drop) > 0 {
		cmd += " --drop " + strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Drop), " ", ","), "[]")
	}
	if len(r.Without) > 0 {
		cmd += " --without " + strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Without), " ", ","), "[]")
	}
	if r.Until > 0 {
		cmd += " --until " + r.Until.String()
	}
	return cmd
}
