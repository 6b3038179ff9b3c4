package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// base is what the snippets of the scripts are added to; they start on line 4.
const base = "name: test\nnodes: [a, b, c, d]\nduration: 60s\n"

// TestScripts runs testdata/scripts. Each command reads its input and prints what
// came of it, or the error:
//
//	file   the input is a whole file
//	add    the input is added to a file with a name, nodes a to d and 60 s
//
// Lines of the input that begin with --set are overrides. With -rewrite the test
// writes what it got; review the difference.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text, set := overrides(t, d.Input)
			switch d.Cmd {
			case "file":
			case "add":
				text = base + text
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			s, err := Parse("f.yaml", []byte(text), set...)
			if err != nil {
				return err.Error() + "\n"
			}
			return show(s)
		})
	})
}

// overrides takes the --set lines out of a script's input.
func overrides(t *testing.T, input string) (text string, set []string) {
	for line := range strings.Lines(input) {
		rest, is := strings.CutPrefix(line, "--set ")
		if !is {
			text += line
			continue
		}
		set = append(set, strings.TrimSuffix(rest, "\n"))
	}
	return text, set
}

// show prints what a scenario says, less what it leaves at its default.
func show(s *Scenario) string {
	var out strings.Builder
	plain, err := Parse("", []byte(base))
	if err != nil {
		panic(err)
	}
	line := func(format string, is, usual any) {
		if fmt.Sprint(is) != fmt.Sprint(usual) {
			fmt.Fprintf(&out, format+"\n", is)
		}
	}
	line("name %v", s.Name, plain.Name)
	line("about %v", s.About, "")
	line("source %v", s.Source, "")
	line("nodes %+v", s.Nodes, plain.Nodes)
	line("voters %v", s.Election.Voters, plain.Election.Voters)
	line("profile %v", s.Profile, plain.Profile)
	line("scouting %v", s.Scouting, plain.Scouting)
	line("unsafe no scouting %v", s.Election.UnsafeNoScouting, false)
	line("rule %v", s.Election.Rule, plain.Election.Rule)
	line("timing %+v", s.Election.Timing, plain.Election.Timing)
	line("quorum %v", s.Election.Quorum, 0)
	line("unsafe quorum %v", s.Election.UnsafeQuorum, false)
	line("qos %v", s.Election.QoS, plain.Election.QoS)
	line("phi %v", s.Election.Phi, plain.Election.Phi)
	line("takeover %v", s.Election.Takeover, plain.Election.Takeover)
	line("network %+v", s.Network, plain.Network)
	line("begin %+v", s.Begin, plain.Begin)
	line("duration %v", s.Duration, plain.Duration)
	line("seed %v", s.Seed, plain.Seed)
	line("simulated only: %v", s.SimulatedOnly, "")
	for _, step := range s.Timeline {
		fmt.Fprintf(&out, "%d:%d %s %s: %s\n", step.Pos.Line, step.Pos.Column, span(step.At), step.Text,
			fields(step.Action))
	}
	for _, e := range s.Expect {
		fmt.Fprintf(&out, "%d:%d %s..%s %s: %s\n", e.Pos.Line, e.Pos.Column, span(e.From), span(e.To),
			e.Text, fields(e.Want))
	}
	return out.String() + "ok\n"
}

// fields prints what an action or a want says, less what it leaves out.
func fields(a any) string {
	said, v := "", reflect.ValueOf(a)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			said += fmt.Sprintf(" %s:%+v", v.Type().Field(i).Name, v.Field(i))
		}
	}
	return said[1:]
}
