package scenario

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

// reference returns the sections of the format's reference by their titles.
func reference(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/scenarios-format.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for part := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(part, "\n")
		sections[title] = body
	}
	return sections
}

func TestReferenceNamesEveryKey(t *testing.T) {
	sections := reference(t)
	steps := append(keyNames[stepKeys](), keyNames[repeatKeys]()...)
	for title, keys := range map[string][]string{
		"The file":     keyNames[fileKeys](),
		"Nodes":        keyNames[nodeKeys](),
		"Elector":      keyNames[electorKeys](),
		"Network":      keyNames[linkKeys](),
		"Begin":        keyNames[beginKeys](),
		"Timeline":     steps,
		"Expectations": wantNames(),
	} {
		require.ElementsMatch(t, keys, append(rows(sections[title]), inText[title]...), title)
	}
}

// inText are keys that are explained in a row of another.
var inText = map[string][]string{
	"Timeline": {"at", "how", "unsynced", "wipe", "for", "join", "lost", "via"},
}

// rows returns the keys that begin the entries of a section's lists.
func rows(section string) (keys []string) {
	for line := range strings.Lines(section) {
		if rest, ok := strings.CutPrefix(line, "- `"); ok {
			key, _, _ := strings.Cut(rest, "`")
			keys = append(keys, key)
		}
	}
	return keys
}

func TestReferenceHasTheDefaults(t *testing.T) {
	section := reference(t)["Elector"]
	for key, of := range map[string]func(*elector.Timing) any{
		"initial_wait":         func(t *elector.Timing) any { return t.InitialWait },
		"min_random_wait":      func(t *elector.Timing) any { return t.MinRandomWait },
		"max_random_wait":      func(t *elector.Timing) any { return t.MaxRandomWait },
		"scouting_result":      func(t *elector.Timing) any { return t.ScoutingResult },
		"election_result":      func(t *elector.Timing) any { return t.ElectionResult },
		"heartbeat_broadcast":  func(t *elector.Timing) any { return t.HeartbeatBroadcast },
		"heartbeat_miss_count": func(t *elector.Timing) any { return t.HeartbeatMissCount },
		"lease":                func(t *elector.Timing) any { return t.Lease },
	} {
		var values []string
		for _, name := range elector.ProfileNames() {
			timing, _ := elector.Profile(name)
			require.Contains(t, section, fmt.Sprintf("differ; %s.\n", percent(int(timing.ClockDriftPPM))))
			values = append(values, fmt.Sprint(of(&timing)))
		}
		require.Regexp(t, "- `"+key+"`: [^;]*; "+strings.Join(values, ", ")+`\.\n`, section)
	}
	require.Contains(t, reference(t)["Nodes"], fmt.Sprintf("Up to %d nodes vote", scouting.MaxVoters))

	plain, err := Parse("f.yaml", []byte(base))
	require.NoError(t, err)
	require.Contains(t, reference(t)["Network"],
		"every message; default `"+span(plain.Network.Delay)+"`.\n")
}

func TestReferenceExamplesAreRight(t *testing.T) {
	examples := 0
	for title, section := range reference(t) {
		for i, part := range strings.Split(section, "```yaml\n")[1:] {
			text, _, closed := strings.Cut(part, "```")
			require.True(t, closed, title)
			_, err := Parse(fmt.Sprintf("%s, example %d", title, i+1), []byte(text))
			require.NoError(t, err)
			examples++
		}
	}
	require.Equal(t, 3, examples)
}
