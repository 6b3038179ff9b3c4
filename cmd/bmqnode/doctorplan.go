package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// examinePlanned reads every plan, asks those of its nodes that run already, and
// examines it.
func (o *doctorOptions) examinePlanned(ctx context.Context, files, flags []string) (doctor.Report, error) {
	var plans []doctor.Plan
	if len(flags) > 0 {
		plans = append(plans, planOf("flags", func(f *pflag.FlagSet) error { return f.Parse(flags) }))
	}
	for _, path := range files {
		if _, err := os.Stat(path); err != nil {
			return doctor.Report{}, config.Usage(fmt.Errorf("--config: %w", err))
		}
		plans = append(plans, planOf(path, func(f *pflag.FlagSet) error { return config.ApplyFile(path, f) }))
	}
	return doctor.ExaminePlans(ctx, plans, o.running(ctx, plans)), nil
}

// planOf resolves options as `run` does, and goes on after the first mistake.
func planOf(name string, fill func(*pflag.FlagSet) error) doctor.Plan {
	var o config.Options
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.Usage = func() {}
	file := f.String("config", "", "")
	o.Register(f)
	errs := []error{fill(f)}
	if *file != "" && errs[0] == nil {
		errs = append(errs, config.ApplyFile(*file, f))
	}
	cfg, err := o.Resolve()
	errs = append(errs, err)
	return doctor.Plan{File: name, Config: cfg, AdminAddr: o.Admin.Addr, Problem: errors.Join(errs...)}
}

// running asks the nodes of the plans, and those at --admin if any was named, which of
// the cluster's nodes run. What does not answer does not run.
func (o *doctorOptions) running(ctx context.Context, plans []doctor.Plan) (ids []cluster.NodeID) {
	var to []remote.Answer
	for _, p := range plans {
		to = append(to, remote.Answer{Via: reachableAt(p.AdminAddr), Given: true})
	}
	if !slices.Equal(o.remote.Addrs, remote.DefaultAddrs) {
		for _, addr := range o.remote.Addrs {
			to = append(to, remote.Answer{Via: addr, Given: true})
		}
	}
	var wg sync.WaitGroup
	for i := range to {
		wg.Go(func() { o.remote.Ask(ctx, &to[i]) })
	}
	wg.Wait()
	for i, a := range to {
		if a.Status == nil || len(plans) == 0 || a.Status.Cluster != plans[0].Config.Cluster {
			continue
		}
		if i < len(plans) && a.Node == plans[i].Config.Node {
			plans[i].Running = a.Status
		}
		ids = append(ids, linked(a)...)
	}
	return ids
}

// linked are a node and those to whom it has a link.
func linked(a remote.Answer) []cluster.NodeID {
	ids := []cluster.NodeID{a.Node}
	for _, m := range a.Status.Members {
		if m.Link == "up" {
			ids = append(ids, m.Node)
		}
	}
	return ids
}

// reachableAt is where one asks a node of this machine that listens on every interface.
func reachableAt(addr string) string {
	for _, every := range []string{"0.0.0.0:", "[::]:", ":"} {
		if port, ok := strings.CutPrefix(addr, every); ok {
			return "127.0.0.1:" + port
		}
	}
	return addr
}
