package replay

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

const tableFile = "../../../docs/scenarios-table.md"

const tableHead = `# All scenarios

[Scenarios](scenarios.md) by the first sentence of their ` + "`about`" + `; "simulated": real processes
cannot play it. Written by ` + "`go test ./internal/lab/replay -run Table -update`" + `.
`

// table has one paragraph for every scenario.
func table(t *testing.T) string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, sc := range scenarios(t) {
		live := ""
		if sc.SimulatedOnly != "" {
			live = " (simulated)"
		}
		about, _, _ := strings.Cut(sc.About, ". ")
		b.WriteString("\n" + testkit.Wrap(fmt.Sprintf("[%s](../testdata/scenarios/%s.yaml)%s: %s.",
			sc.Name, sc.Name, live, strings.TrimSuffix(about, ".")), ""))
	}
	return b.String()
}

func TestTableOfScenariosIsComplete(t *testing.T) {
	testkit.Golden(t, tableFile, table(t))
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
