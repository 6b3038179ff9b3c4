package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// EmergencyStatus is the record of an emergency: voters were declared lost for good, see
// package recovery. It stays for as long as the data directory. In JSON, times are RFC
// 3339 in UTC.
type EmergencyStatus struct {
	Time       time.Time           `json:"time"`   // by the wall clock of the node
	Voters     []NodeID            `json:"voters"` // who could vote until then, sorted
	Lost       []NodeID            `json:"lost"`
	Reason     string              `json:"reason,omitempty"`
	Readmitted []ReadmissionStatus `json:"readmitted,omitempty"`
}

// ReadmissionStatus records that a lost voter was replaced and votes again.
type ReadmissionStatus struct {
	Node NodeID    `json:"node"`
	Time time.Time `json:"time"`
}

// Missing returns those of the lost that may still not vote.
func (e EmergencyStatus) Missing() []NodeID {
	return slices.DeleteFunc(slices.Clone(e.Lost), func(id NodeID) bool {
		return slices.ContainsFunc(e.Readmitted, func(r ReadmissionStatus) bool { return r.Node == id })
	})
}

// heedEmergencies removes the lost from the voters of the configuration, and logs that at every
// start. It runs before anything that uses the voters.
func (n *Node) heedEmergencies() error {
	n.emergencies = emergencyStatus(n.store.Emergencies())
	n.lost = missing(n.emergencies)
	left := without(n.cfg.Voters, n.lost)
	if err := n.checkLeft(left); err != nil {
		return err
	}
	n.cfg.Voters = left
	for _, e := range n.emergencies {
		n.logEmergency(e)
	}
	return nil
}

// checkLeft returns why this node cannot run with the voters that are left; nil if it can.
func (n *Node) checkLeft(left []NodeID) error {
	all, quorum := n.cfg.Voters, n.cfg.Election.Quorum
	switch {
	case slices.Contains(n.lost, n.cfg.Node) && slices.Contains(all, n.cfg.Node):
		return fmt.Errorf("the data directory %s is that of a voter that was declared lost (%s): it must never be used again; "+
			"start node %s on an empty directory, after it was readmitted on every voter that is left",
			n.cfg.DataDir, emergencyNote(n.emergencies), n.cfg.Node)
	case len(left) == 0 && len(all) > 0:
		return fmt.Errorf("all voters of the configuration, %s, were declared lost: name those that are left, or readmit one", words.List(all))
	case quorum > len(left):
		return fmt.Errorf("the configured quorum is %d, but must be at most %d: of the voters %s were declared lost, and %s are left; "+
			"configure no quorum (0: a majority of these)", quorum, len(left), words.List(without(all, left)),
			words.List(left))
	}
	return nil
}

func (n *Node) logEmergency(e EmergencyStatus) {
	fields := []any{"lost", words.List(e.Lost), "declared", e.Time.Format(time.RFC3339),
		"reason", e.Reason, "voters", words.List(n.cfg.Voters)}
	if gone := e.Missing(); len(gone) > 0 {
		n.log.Error("voters were declared lost: the others elect without them",
			append(fields, "missing", words.List(gone))...)
		return
	}
	n.log.Warn("voters were declared lost once; all have been readmitted", fields...)
}

// missing returns the nodes that may not vote because of emergencies.
func missing(es []EmergencyStatus) (ids []NodeID) {
	for _, e := range es {
		ids = append(ids, e.Missing()...)
	}
	return ids
}

// emergencyNote says which voters are missing and since when; "" if none are.
func emergencyNote(es []EmergencyStatus) string {
	var notes []string
	for _, e := range es {
		if gone := e.Missing(); len(gone) > 0 {
			notes = append(notes, fmt.Sprintf("%s declared lost at %s", words.List(gone),
				e.Time.Format(time.RFC3339)))
		}
	}
	return strings.Join(notes, "; ")
}

// withEmergencies adds to an explanation that voters of the configuration may not vote.
func (n *Node) withEmergencies(explanation string) string {
	if note := emergencyNote(n.emergencies); note != "" {
		return explanation + "; EMERGENCY: " + note
	}
	return explanation
}

func emergencyStatus(es []store.Emergency) (all []EmergencyStatus) {
	for _, e := range es {
		st := EmergencyStatus{Time: e.Time, Voters: e.Voters, Lost: e.Lost, Reason: e.Reason}
		for _, r := range e.Readmitted {
			st.Readmitted = append(st.Readmitted, ReadmissionStatus{r.Node, r.Time})
		}
		all = append(all, st)
	}
	return all
}

// without returns a copy of ids without those in gone.
func without(ids, gone []NodeID) []NodeID {
	return slices.DeleteFunc(slices.Clone(ids),
		func(id NodeID) bool { return slices.Contains(gone, id) })
}
