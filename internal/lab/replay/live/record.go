package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// ask asks a process for a step on the record, beside the timeline.
func (r *run) ask(ctx context.Context, a scenario.Action) {
	later := r.later
	via := r.leader(ctx)
	if a.Via != "" {
		via, _ = r.mesh.Node(string(a.Via))
	}
	if via == nil || !r.answers(via) {
		later("nobody leads")
		return
	}
	r.asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, sim.AskFor)
		defer cancel()
		if err := carryOut(ctx, via.Client(), a); err != nil {
			later(err.Error())
		}
	})
}

// carryOut lets a node publish a value, or change voters one after the other.
func carryOut(ctx context.Context, c *admin.Client, a scenario.Action) error {
	var changes []admin.VotersRequest
	switch {
	case a.Do == "publish":
		_, err := c.Publish(ctx, cluster.DefaultGroup, []byte(a.Value), nil)
		return err
	case a.Do == "replace-voter":
		changes = []admin.VotersRequest{{Replace: a.Remove[0], By: a.Add[0]}}
	default:
		for _, id := range a.Add {
			changes = append(changes, admin.VotersRequest{Add: id})
		}
		for _, id := range a.Remove {
			changes = append(changes, admin.VotersRequest{Remove: id})
		}
	}
	for _, change := range changes {
		if err := c.ChangeVoters(ctx, change, func(cluster.VoterStep) {}); err != nil {
			return err
		}
	}
	return nil
}

// watchRecords notes which record each process knows to be committed, if the scenario is about
// that.
func (r *run) watchRecords(ctx context.Context) {
	isAbout := func(s scenario.Step) bool {
		return slices.Contains(scenario.RecordActions, s.Action.Do)
	}
	if !slices.ContainsFunc(r.sc.Timeline, isAbout) {
		return
	}
	for _, n := range r.mesh.Nodes() {
		r.asking.Go(func() {
			for ctx.Err() == nil { // again when its process has ended
				_ = n.Client().Follow(ctx, &admin.Stream{Record: func(admin.RecordEvent) {
					rec, err := n.Client().Record(ctx, cluster.DefaultGroup, false)
					if err == nil { // it has one, which may be newer than the event by now
						r.journal.shown(cluster.NodeID(n.Name), rec.LSN, rec.Value, rec.Voters)
					}
				}})
				select {
				case <-time.After(sendAgain):
				case <-ctx.Done():
				}
			}
		})
	}
}

// forgetVoters makes the configuration in a file that of a node which joins.
func forgetVoters(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	options := map[string]any{}
	if err := yaml.Unmarshal(text, &options); err != nil {
		return err
	}
	options["voters"], options["quorum"] = []string{}, 0
	if text, err = yaml.Marshal(options); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// rejoin prepares a process that is to start again: it knows no voters from now on, or has lost
// some for good.
func (r *run) rejoin(ctx context.Context, a scenario.Action, n *procs.Node) error {
	if a.Join {
		if err := forgetVoters(n.ConfigFile); err != nil {
			return err
		}
	}
	if a.Lost == nil {
		return nil
	}
	var lost []string
	for _, id := range a.Lost {
		lost = append(lost, string(id))
	}
	out, err := exec.CommandContext(ctx, n.Binary, "emergency", "--config", n.ConfigFile,
		"--lost", strings.Join(lost, ","), "--reason", "the scenario says so",
		"--confirm", cluster.DefaultCluster).CombinedOutput()
	if err != nil {
		return fmt.Errorf("emergency on %s in %s: %w: %s", n.Name, filepath.Base(n.Dir), err, out)
	}
	return nil
}
