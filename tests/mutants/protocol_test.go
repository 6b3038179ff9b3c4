package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var allOfThem = flag.Bool("all", false, "try every mutant of the protocol, not only a few")

// protocolFile is a table of mutants made by hand.
const protocolFile = "../../testdata/mutants/protocol.txt"

// fewer is how many of the table are tried if nobody asks for all, spread over it.
const fewer = 4

// TestProtocolMutants applies each mutant of the table and demands that the exploration of the
// real machine breaks in the scene that the table names, with the words that it names, and that
// the test turns red that it names.
func TestProtocolMutants(t *testing.T) {
	t.Setenv("SEARCH_STATES", "40000")
	table := readProtocol(t)
	require.GreaterOrEqual(t, len(table), 20)
	step := 1
	if !*allOfThem {
		step = (len(table) + fewer - 1) / fewer
	}
	b := &box{"", t.TempDir()}
	var err error
	b.root, err = filepath.Abs("../..")
	require.NoError(t, err)
	for i := 0; i < len(table); i += step {
		m := table[i]
		t.Run(m.name, func(t *testing.T) {
			binary, err := b.build(t.Context(), m.pkg, m.apply(t, b.root))
			require.NoError(t, err, "it must compile")
			if m.scene != "" {
				m.falls(t, b, binary, "TestSearch/^"+regexp.QuoteMeta(strings.ReplaceAll(m.scene, " ", "_"))+"$",
					`(?m)^ +search_test\.go:\d+: `+regexp.QuoteMeta(m.scene)+": .*(?:"+m.finds+")")
			}
			if m.test != "" {
				m.falls(t, b, binary, m.test, "--- FAIL: "+m.test)
			}
		})
	}
}

// falls makes sure that a test of the mutant fails, and says so.
func (m *protocolMutant) falls(t *testing.T, b *box, binary, test, says string) {
	out, ok := b.test(t.Context(), m.pkg, binary, 0, 5*time.Minute, "-test.run=^"+test)
	require.False(t, ok, "nothing is found:\n%s", out)
	// The output of a test that fails, as it is to do: it must not look like one of this test.
	t.Log("\n| " + strings.ReplaceAll(out, "\n", "\n| "))
	require.NotContains(t, out, "panic: ")
	require.Regexp(t, says, out)
}

// protocolMutant breaks a rule.
type protocolMutant struct {
	name      string
	pkg, test string // a test that finds it
	scene     string // of the exploration that finds it
	finds     string // a regular expression: what the exploration says then
	edits     []edit
}

// edit replaces lines of a file, which stand there once.
type edit struct {
	file     string
	old, new []string
}

// readProtocol reads the table: paragraphs of a name, fields, and the changed lines.
func readProtocol(t *testing.T) (table []protocolMutant) {
	t.Helper()
	text, err := os.ReadFile(protocolFile)
	require.NoError(t, err)
	for _, paragraph := range strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:] {
		lines := strings.Split(paragraph, "\n")
		m := protocolMutant{name: lines[0], pkg: "elector"}
		for _, line := range lines[1:] {
			field, value, _ := strings.Cut(line, ": ")
			last := max(len(m.edits)-1, 0)
			switch {
			case line[0] == '-':
				m.edits[last].old = append(m.edits[last].old, line[1:])
			case line[0] == '+':
				m.edits[last].new = append(m.edits[last].new, line[1:])
			case field == "file":
				m.edits = append(m.edits, edit{file: value})
			case field == "package":
				m.pkg = value
			case field == "test":
				m.test = value
			case field == "scene":
				m.scene = value
			case field == "finds":
				m.finds = value
			default:
				require.Equal(t, "rules", field, "%s: %q", m.name, line)
			}
		}
		require.NotEmpty(t, m.test+m.scene, m.name)
		require.Equal(t, m.scene != "", m.finds != "", m.name)
		table = append(table, m)
	}
	return table
}

// apply returns the files that the mutant changes, as they are then.
func (m *protocolMutant) apply(t *testing.T, root string) map[string][]byte {
	t.Helper()
	changed := map[string][]byte{}
	for _, e := range m.edits {
		source, err := os.ReadFile(filepath.Join(root, e.file))
		require.NoError(t, err)
		old := "\n" + strings.Join(e.old, "\n") + "\n"
		require.Equal(t, 1, strings.Count(string(source), old), "%s has once:\n%s", e.file, old)
		with := strings.Join(append([]string{""}, e.new...), "\n") + "\n"
		changed[e.file] = []byte(strings.Replace(string(source), old, with, 1))
	}
	return changed
}
