package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// Pauses says on which nodes elections are paused, and until the first of them goes on; ""
// if on none. InPart says that there are voters on which they are not.
func Pauses(statuses []*cluster.Status) (text string, inPart bool) {
	var paused, not []cluster.NodeID
	var until time.Time
	for _, st := range statuses {
		if st.PausedUntil.IsZero() {
			if slices.Contains(st.Groups[0].Voters, st.Node) {
				not = append(not, st.Node)
			}
			continue
		}
		paused = append(paused, st.Node)
		if until.IsZero() || st.PausedUntil.Before(until) {
			until = st.PausedUntil
		}
	}
	if len(paused) == 0 {
		return "", false
	}
	text = fmt.Sprintf("elections are paused on %s until %s", words.List(paused),
		until.Format(time.RFC3339))
	if len(not) > 0 {
		return fmt.Sprintf("%s, but not on %s",
			text, words.List(not)), true
	}
	return text + "; 'bmqnode resume' ends that", false
}

// pauses warns of a pause that not all voters know of.
func (s *survey) pauses() {
	var statuses []*cluster.Status
	for _, a := range s.answered {
		statuses = append(statuses, a.Status)
	}
	switch text, inPart := Pauses(statuses); {
	case inPart:
		s.problem(Warn, PausedInPart, "pauses", "", "%s", text)
	case text != "":
		s.good("pauses", "", "%s", text)
	}
}
