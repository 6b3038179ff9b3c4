package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/store"
)

// Emergency says that voters are lost for good, so many that those who are left
// are no quorum. See DeclareLost.
type Emergency struct {
	// Cluster is the name of the cluster. It confirms that this is meant: it must
	// be what the data directory says. Required by DeclareLost.
	Cluster string
	// Node, if set, must be the node that the data directory belongs to.
	Node NodeID
	// Voters are those of the configuration. Required.
	Voters []NodeID
	// Lost are those of them that will never come back, at least one. Required.
	Lost []NodeID
	// Reason is kept and shown ever after; any text, may be empty.
	Reason string
	// Retire is to be set for the directory of one of the lost, should it turn up
	// again: it is marked, so that no node ever starts on it as a voter. Without
	// it such a directory is refused.
	Retire bool
}

// EmergencyOutcome is what an emergency brings about on one node.
type EmergencyOutcome struct {
	Cluster string
	Node    NodeID
	Before  []NodeID // who could vote until now, sorted
	Voters  []NodeID // who votes from the next start on, sorted
	Quorum  int      // how many of these elect, unless the configuration says otherwise
}

// EmergencyStatus is the record of an emergency. It stays for as long as the data
// directory. In JSON, times are RFC 3339 in UTC.
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

// DeclareLost lets the voters that are left elect a leader among themselves,
// although they are no quorum of what the cluster was. It writes to the data
// directory dir of a node that is stopped, durably, and must be called for the
// directory of every voter that is left, with the same e. From its next start on
// the node's voters are those of its configuration without the lost, and its
// terms are above all that the lost can have used.
//
// It is dangerous: if some of the lost still run, and are a quorum of what the
// cluster was, they lead too wherever they do not hear those who are left, and
// there are two leaders. Only fences (package lsn) tell these apart. The data directories
// of the lost must never be used again.
//
// It is refused if it is not needed, if dir belongs to another node or cluster, to
// one of the lost, or to no voter, and while a node runs on dir.
func DeclareLost(dir string, e Emergency) error {
	return inDir(dir, func(s *store.Store) error {
		outcome, err := e.outcome(s)
		if err != nil {
			return fmt.Errorf("declare voters lost in %s: %w", dir, err)
		}
		if err := confirmed(e.Cluster, outcome.Cluster); err != nil {
			return fmt.Errorf("declare voters lost in %s: %w", dir, err)
		}
		return s.Declare(store.Emergency{
			Time: time.Now(), Voters: texts(outcome.Before), Lost: texts(e.Lost), Reason: e.Reason,
		})
	})
}

// CheckLost returns what DeclareLost would bring about, or why it would be
// refused; e.Cluster is not looked at. It changes nothing.
func CheckLost(dir string, e Emergency) (outcome EmergencyOutcome, err error) {
	err = inDir(dir, func(s *store.Store) (err error) {
		if outcome, err = e.outcome(s); err != nil {
			return fmt.Errorf("declare voters lost in %s: %w", dir, err)
		}
		return nil
	})
	return outcome, err
}

// Readmit lets a lost voter vote again, which must have been replaced: its new
// node has another data directory, empty at first. Like DeclareLost it is for the
// directory of every voter that is left, confirmed by the cluster's name.
//
// One voter at a time: the node must have run since the last one was readmitted.
// Two at once, and old and new quorums might have no node in common.
func Readmit(dir, cluster string, node NodeID) error {
	return inDir(dir, func(s *store.Store) error {
		err := confirmed(cluster, s.Owner().Cluster)
		if err == nil {
			err = settled(s)
		}
		if err == nil {
			err = s.Readmit(string(node), time.Now())
		}
		if err != nil {
			return fmt.Errorf("readmit %s in %s: %w", node, dir, err)
		}
		return nil
	})
}

// settled refuses a second change before the node has lived with the first.
func settled(s *store.Store) error {
	for _, e := range s.Emergencies() {
		for _, r := range e.Readmitted {
			if r.Boot == s.Boot() {
				return fmt.Errorf("node %s has not run since %s was readmitted: start every voter that is left, "+
					"see %s follow, then go on with the next", s.Owner().Node, r.Node, r.Node)
			}
		}
	}
	return nil
}

// Emergencies returns the emergencies that are recorded in the data directory of
// a stopped node, oldest first. Those of a running one are in its Status.
func Emergencies(dir string) (found []EmergencyStatus, err error) {
	err = inDir(dir, func(s *store.Store) error {
		found = emergencyStatus(s.Emergencies())
		return nil
	})
	return found, err
}

// inDir runs do on the directory of a stopped node.
func inDir(dir string, do func(*store.Store) error) error {
	s, err := store.OpenExisting(dir)
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w; stop the node first", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

func confirmed(said, is string) error {
	if said != is {
		return fmt.Errorf("the cluster's name, which confirms this, is %q, not %q", is, said)
	}
	return nil
}

// outcome judges e for the directory that s is.
func (e Emergency) outcome(s *store.Store) (EmergencyOutcome, error) {
	owner := s.Owner()
	o := EmergencyOutcome{Cluster: owner.Cluster, Node: NodeID(owner.Node)}
	if e.Node != "" && e.Node != o.Node {
		return o, fmt.Errorf("the directory belongs to node %q of cluster %q, not to node %q", o.Node, o.Cluster, e.Node)
	}
	o.Before = without(sorted(e.Voters), missing(emergencyStatus(s.Emergencies())))
	o.Voters = without(o.Before, e.Lost)
	o.Quorum = elector.Majority(len(o.Voters))
	return o, errors.Join(e.checkNames(o), e.checkNode(o), e.checkNeed(o))
}

func (e Emergency) checkNames(o EmergencyOutcome) error {
	if len(e.Lost) == 0 {
		return errors.New("no voter is named as lost")
	}
	for _, names := range [][]NodeID{e.Voters, e.Lost} {
		if twice := repeated(names); twice != "" {
			return fmt.Errorf("%s is named twice", twice)
		}
	}
	if unknown := without(e.Lost, e.Voters); len(unknown) > 0 {
		return fmt.Errorf("%s: not among the voters %s", join(unknown), join(e.Voters))
	}
	if known := without(e.Lost, o.Before); len(known) > 0 {
		return fmt.Errorf("%s: declared lost here already", join(known))
	}
	return nil
}

func (e Emergency) checkNode(o EmergencyOutcome) error {
	lost := slices.Contains(e.Lost, o.Node)
	switch {
	case !slices.Contains(e.Voters, o.Node):
		return fmt.Errorf("the directory belongs to node %s, which is not among the voters %s: only voters need this", o.Node, join(e.Voters))
	case lost && !e.Retire:
		return fmt.Errorf("the directory belongs to node %s, which is named as lost: move it away, it must never be used again", o.Node)
	case !lost && e.Retire:
		return fmt.Errorf("the directory belongs to node %s, which is not named as lost, so it cannot be retired", o.Node)
	}
	return nil
}

func (e Emergency) checkNeed(o EmergencyOutcome) error {
	switch needed := elector.Majority(len(o.Before)); {
	case len(o.Before) > 0 && len(o.Voters) == 0:
		return errors.New("no voter would be left")
	case len(o.Voters) >= needed && len(e.Lost) > 0:
		return fmt.Errorf("not needed: %s are %d of %d voters, and %d elect a leader as it is; start them",
			join(o.Voters), len(o.Voters), len(o.Before), needed)
	}
	return nil
}

func repeated(names []NodeID) NodeID {
	all := sorted(names)
	for i := range all[min(1, len(all)):] {
		if all[i] == all[i+1] {
			return all[i]
		}
	}
	return ""
}

func sorted(ids []NodeID) []NodeID { return slices.Sorted(slices.Values(ids)) }

// without returns a copy of ids without those in gone.
func without(ids, gone []NodeID) []NodeID {
	return slices.DeleteFunc(slices.Clone(ids), func(id NodeID) bool { return slices.Contains(gone, id) })
}

func join(ids []NodeID) string { return strings.Join(texts(ids), ", ") }

func texts(ids []NodeID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}

func nodeIDs(names []string) []NodeID {
	all := make([]NodeID, len(names))
	for i, name := range names {
		all[i] = NodeID(name)
	}
	return all
}
