package omega

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// Alive is a heartbeat on one link. Times are readings of the clock that all share, except for
// Scheduled.
type Alive struct {
	Epoch      algorithm.Time // when the sender started
	Number     uint64         // of the heartbeat; 0: the sender is not active (any more)
	Scheduled  time.Duration  // when it was due, on the sender's own clock
	Period     time.Duration  // until the next one
	Wanted     time.Duration  // the period that the sender wants of the receiver; 0: any
	Acc, Start algorithm.Time // of the sender
	Local      algorithm.NodeID
	LocalAcc   algorithm.Time // of Local
}

// Name returns "ALIVE".
func (Alive) Name() string { return "ALIVE" }

// String has what the sender says of itself, and of its local leader.
func (a Alive) String() string {
	text := fmt.Sprintf("ALIVE acc=%s start=%s", a.Acc, a.Start)
	if a.Number == 0 {
		text += " silent"
	}
	if a.Local != "" {
		text += fmt.Sprintf(" local=%s acc=%s", a.Local, a.LocalAcc)
	}
	if a.Wanted != 0 {
		text += fmt.Sprintf(" period=%s wanted=%s", a.Period, a.Wanted)
	}
	return text
}

// Accuse says that the sender suspects the receiver.
type Accuse struct {
	Start algorithm.Time // of the receiver, as far as the sender knew; only in Omega_l
}

// Name returns "ACCUSE".
func (Accuse) Name() string { return "ACCUSE" }
