package recovery

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// Emergency says that so many voters are lost for ever that the remaining ones are no quorum.
// See DeclareLost.
type Emergency struct {
	// Cluster is the name of the cluster. It is a confirmation: it must equal the name in the
	// data directory. Required by DeclareLost.
	Cluster string
	// Node, if set, must be the node that the data directory belongs to.
	Node cluster.NodeID
	// Voters are those of the configuration. Required.
	Voters []cluster.NodeID
	// Lost are the voters that will never come back, at least one. Required.
	Lost []cluster.NodeID
	// Reason is recorded and shown in the status. Any text; may be empty.
	Reason string
	// Retire is for the directory of a lost voter that was found again: it is marked, so that
	// no node ever starts on it as a voter. Without Retire such a directory is refused.
	Retire bool
}

// Outcome is the effect of an emergency on one node.
type Outcome struct {
	Cluster string
	Node    cluster.NodeID
	Before  []cluster.NodeID // who could vote until now, sorted
	Voters  []cluster.NodeID // who votes from the next start on, sorted
	Quorum  int              // how many of them elect a leader, unless the configuration sets it
	// Records are the newest records that this node accepted, such as "default at 5.2", sorted. A
	// newer one that was committed is lost unless another voter that is left has it.
	Records []string
}

// DeclareLost lets the remaining voters elect a leader among themselves, although they are no
// quorum of all voters. It writes durably to the data directory dir of a stopped node, and
// must be called for the directory of every remaining voter, with the same e. From its next
// start on, the node's voters are those of its configuration and of its records without the lost
// ones, and its terms are above all terms that the lost voters can have used. The data directories
// of the lost voters must never be used again.
//
// It writes no record: those left may have accepted different ones. The first leader has the newest
// of theirs, and makes those left its voters.
//
// It returns an error if it is not needed, if dir belongs to another node or cluster, to
// a lost voter or to no voter, and if a node runs on dir.
func DeclareLost(dir string, e Emergency) error {
	return inDir(dir, func(s *store.Store) error {
		outcome, err := e.outcome(s)
		if err == nil {
			err = checkName(e.Cluster, outcome.Cluster)
		}
		if err != nil {
			return fmt.Errorf("declare voters lost in %s: %w", dir, err)
		}
		return s.Declare(store.Emergency{
			Time: time.Now(), Voters: outcome.Before, Lost: e.Lost, Reason: e.Reason,
		})
	})
}

// CheckLost returns the effect that DeclareLost would have, or its error; it ignores e.Cluster.
// It changes nothing.
func CheckLost(dir string, e Emergency) (outcome Outcome, err error) {
	err = inDir(dir, func(s *store.Store) (err error) {
		if outcome, err = e.outcome(s); err != nil {
			return fmt.Errorf("declare voters lost in %s: %w", dir, err)
		}
		return nil
	})
	return outcome, err
}

// Readmit lets a lost voter vote again. The voter must have been replaced by a node with a new,
// empty data directory. Like DeclareLost, it must be called for the directory of every
// remaining voter, and the cluster's name confirms it.
//
// An election with a record does not count the node before cluster.Node.AddVoter.
//
// Voters are readmitted one at a time: the node must have run since the last one was. If two
// were readmitted at once, an old and a new quorum might have no node in common.
func Readmit(dir, clusterName string, node cluster.NodeID) error {
	return inDir(dir, func(s *store.Store) error {
		err := checkName(clusterName, s.Owner().Cluster)
		for _, e := range s.Emergencies() {
			for _, r := range e.Readmitted {
				if err == nil && r.Boot == s.Boot() {
					err = fmt.Errorf("node %s has not run since %s was readmitted: start every "+
						"voter that is left, see %s follow, then go on with the next",
						s.Owner().Node, r.Node, r.Node)
				}
			}
		}
		if err == nil {
			err = s.Readmit(node, time.Now())
		}
		if err != nil {
			return fmt.Errorf("readmit %s in %s: %w", node, dir, err)
		}
		return nil
	})
}

// Emergencies returns the emergencies in the data directory of a stopped node, oldest first.
// The Status of a running node has them, too.
func Emergencies(dir string) (found []cluster.EmergencyStatus, err error) {
	err = inDir(dir, func(s *store.Store) error {
		for _, e := range s.Emergencies() {
			st := cluster.EmergencyStatus{Time: e.Time, Voters: e.Voters, Lost: e.Lost, Reason: e.Reason}
			for _, r := range e.Readmitted {
				st.Readmitted = append(st.Readmitted, cluster.ReadmissionStatus{Node: r.Node, Time: r.Time})
			}
			found = append(found, st)
		}
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

// checkName checks the cluster's name that confirms a change.
func checkName(said, is string) error {
	if said != is {
		return fmt.Errorf("the cluster's name, which confirms this, is %q, not %q", is, said)
	}
	return nil
}

// outcome returns the effect of e on the directory of s, or why e is refused.
func (e Emergency) outcome(s *store.Store) (Outcome, error) {
	owner := s.Owner()
	o := Outcome{Cluster: owner.Cluster, Node: cluster.NodeID(owner.Node)}
	if e.Node != "" && e.Node != o.Node {
		return o, fmt.Errorf("the directory belongs to node %q of cluster %q, not to node %q",
			o.Node, o.Cluster, e.Node)
	}
	sets := [][]cluster.NodeID{e.Voters} // a quorum of one of them must be lost
	for group, r := range s.Records() {
		var voters []cluster.NodeID
		for _, v := range r.Voters.Voters() {
			voters = append(voters, v.Node)
		}
		sets = append(sets, voters)
		o.Records = append(o.Records, fmt.Sprintf("%s at %s", group, r.LSN))
	}
	slices.Sort(o.Records)
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(sets...))))
	o.Before = slices.Clone(all)
	for _, old := range s.Emergencies() {
		o.Before = slices.DeleteFunc(o.Before, old.MissesNode)
	}
	o.Voters = without(o.Before, e.Lost)
	o.Quorum = elector.Majority(len(o.Voters))
	return o, errors.Join(e.checkNames(o, all), e.checkNode(o, all), e.checkNeed(o, sets))
}

func (e Emergency) checkNames(o Outcome, all []cluster.NodeID) error {
	if len(e.Lost) == 0 {
		return errors.New("no voter is named as lost")
	}
	for _, names := range [][]cluster.NodeID{e.Voters, e.Lost} {
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				return fmt.Errorf("%s is named twice", name)
			}
		}
	}
	if unknown := without(e.Lost, all); len(unknown) > 0 {
		return fmt.Errorf("%s: not among the voters %s",
			words.List(unknown), words.List(e.Voters))
	}
	if known := without(e.Lost, o.Before); len(known) > 0 {
		return fmt.Errorf("%s: declared lost here already", words.List(known))
	}
	return nil
}

func (e Emergency) checkNode(o Outcome, all []cluster.NodeID) error {
	lost := slices.Contains(e.Lost, o.Node)
	switch {
	case !slices.Contains(all, o.Node):
		return fmt.Errorf("the directory belongs to node %s, which is not among the voters %s: "+
			"only voters need this", o.Node, words.List(e.Voters))
	case lost && !e.Retire:
		return fmt.Errorf("the directory belongs to node %s, which is named as lost: "+
			"move it away, it must never be used again", o.Node)
	case !lost && e.Retire:
		return fmt.Errorf("the directory belongs to node %s, which is not named as lost, "+
			"so it cannot be retired", o.Node)
	}
	return nil
}

func (e Emergency) checkNeed(o Outcome, sets [][]cluster.NodeID) error {
	isNeeded := func(set []cluster.NodeID) bool {
		before := without(set, without(set, o.Before))
		return len(before) > 0 && len(without(before, e.Lost)) < elector.Majority(len(before))
	}
	switch needed := elector.Majority(len(o.Before)); {
	case len(o.Before) > 0 && len(o.Voters) == 0:
		return errors.New("no voter would be left")
	case !slices.ContainsFunc(sets, isNeeded) && len(e.Lost) > 0:
		return fmt.Errorf("not needed: %s are %d of %d voters, and %d elect a leader as it is; "+
			"start them", words.List(o.Voters), len(o.Voters), len(o.Before), needed)
	}
	return nil
}

// without returns a copy of ids without those in gone.
func without(ids, gone []cluster.NodeID) []cluster.NodeID {
	return slices.DeleteFunc(slices.Clone(ids), func(id cluster.NodeID) bool {
		return slices.Contains(gone, id)
	})
}
