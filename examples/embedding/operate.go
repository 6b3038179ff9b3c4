package embedding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/health"
)

// serve is a process of the service, from its start to SIGTERM.
func serve(cfg cluster.Config, r *reporter) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	err = r.lead(ctx, node.Default())

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, node.Close(ctx)) // hands over, if that is still to be done
}

// leadEach runs an election for each tenant, beside each other. Each node has the
// same tenants; where it ranks first, rank is higher than elsewhere.
func leadEach(ctx context.Context, node *cluster.Node, ranks map[string]int, r *reporter) error {
	var elections []*cluster.Election
	for tenant, rank := range ranks {
		// snippet: groups
		e, err := node.Election("reports/"+tenant, cluster.ElectionConfig{AwaitCampaign: true,
			Priority: rank}) // higher where this tenant's leader should be
		// end
		if err != nil {
			return err
		}
		elections = append(elections, e)
	}
	ended := make(chan error, len(elections))
	for _, e := range elections {
		go func() { ended <- r.lead(ctx, e) }()
	}
	var err error
	for range elections {
		err = errors.Join(err, <-ended)
	}
	return err
}

// leadOne leads in the election of one tenant, for which no node need be configured.
// Config.Prefixes has "reports/": the other voters open it when this node stands. When it is
// closed, they close theirs once nobody has used it for a while.
func leadOne(ctx context.Context, node *cluster.Node, tenant string, r *reporter) error {
	// snippet: prefix
	e, err := node.Open("reports/" + tenant) // as Config.Prefixes["reports/"] says
	// end
	if err != nil {
		return err
	}
	return errors.Join(r.lead(ctx, e), e.Close(context.WithoutCancel(ctx)))
}

// beforeDeploy lets another node lead while this one is replaced.
func beforeDeploy(ctx context.Context, e *cluster.Election) error {
	// snippet: deploy
	err := e.StepDown(ctx, 30*time.Second) // and does not stand again for so long
	// end
	return err
}

// handOver lets a certain node lead.
func handOver(ctx context.Context, e *cluster.Election) error {
	// snippet: transfer
	err := e.Transfer(ctx, "b") // nil: b leads. "" is the best follower
	// end
	return err
}

// probes let a node lead only while its disk takes writes and its check finds nothing wrong.
func probes(dir string, check func(context.Context) error) health.Options {
	// snippet: health
	probes := health.Options{Probes: []health.Probe{ // for Config.Health
		health.Disk(dir), // a sync that hangs holds one goroutine, and nothing else
		{Name: "queue", Check: check},
	}}
	// end
	return probes
}

// follow tells of every leader.
func follow(ctx context.Context, e *cluster.Election) {
	// snippet: observe
	for leader := range e.Observe(ctx) {
		if leader.Node == "" {
			fmt.Println("nobody leads")
			continue
		}
		fmt.Printf("%s leads in term %d: %s\n", leader.Node, leader.Term, leader.Meta)
	}
	// end
}
