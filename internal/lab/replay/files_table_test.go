package replay

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

const tableFile = "../../../docs/scenarios-table.md"

const tableHead = `# All scenarios

Written by ` + "`go test ./internal/lab/replay -run Table -update`" + ` from the files in
[testdata/scenarios](../testdata/scenarios). What they are for and how to run them: [scenarios.md](scenarios.md).
"live" says whether real processes can play the file too.

| scenario | what it teaches | where it comes from | live |
| --- | --- | --- | --- |
`

// table has one line for every scenario.
func table(t *testing.T) string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, sc := range scenarios(t) {
		live := "yes"
		if sc.SimulatedOnly != "" {
			live = "no: " + sc.SimulatedOnly
		}
		fmt.Fprintf(&b, "| [%s](../testdata/scenarios/%s.yaml) | %s | %s | %s |\n",
			sc.Name, sc.Name, cell(sc.About), cell(sc.Source), cell(live))
	}
	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func TestTableOfScenariosIsComplete(t *testing.T) {
	got := table(t)
	if *rewrite {
		require.NoError(t, os.WriteFile(tableFile, []byte(got), 0o644))
	}
	want, err := os.ReadFile(tableFile)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), got, "docs/scenarios-table.md is out of date: go test ./internal/lab/replay -run Table -update")
}

// fenced are the scenarios within the guide.
var fenced = regexp.MustCompile("(?s)```yaml\n(name: .*?)```")

func TestTheGuidesScenariosHold(t *testing.T) {
	text, err := os.ReadFile("../../../docs/scenarios.md")
	require.NoError(t, err)
	found := fenced.FindAllSubmatch(text, -1)
	require.Len(t, found, 2)
	for _, f := range found {
		sc, err := scenario.Parse("scenarios.md", f[1])
		require.NoError(t, err)
		for seed := range uint64(moreSeeds) {
			require.Empty(t, failure(sc, seed), sc.Name)
		}
	}
}
