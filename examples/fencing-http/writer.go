package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// patience bounds one request.
const patience = 10 * time.Second

// writer is the leader's side.
type writer struct {
	url   string
	every time.Duration
	log   hclog.Logger
}

// run starts a node and writes while it leads, until ctx ends.
func (w writer) run(ctx context.Context, cfg cluster.Config, log hclog.Logger) error {
	w.log = log.With("node", cfg.Node)
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	w.log.Info("started", "gossip", node.Status().GossipAddr)
	err = node.Default().Run(ctx, cluster.Callbacks{OnStartedLeading: w.lead})
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(err, node.Close(ctx))
}

// lead writes at every tick of a leadership. ctx ends before another node leads.
func (w writer) lead(ctx context.Context, l *cluster.Leadership) error {
	ticks := time.NewTicker(w.every)
	defer ticks.Stop()
	for ctx.Err() == nil {
		token, err := l.NextLSN() // fails if this node does not lead any more
		if err == nil {
			w.send(ctx, token)
		} else {
			w.log.Info("not written: no leader any more", "error", err)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// send sends a token along with what it writes, and minds the refusal.
func (w writer) send(ctx context.Context, token lsn.LSN) {
	err := put(ctx, w.url, token, "written in term "+token.Term.String())
	var stale *lsn.StaleError
	switch {
	case errors.As(err, &stale):
		w.log.Warn("refused: a newer leader has written", "token", stale.Got, "newest", stale.Newest)
	case err != nil:
		w.log.Error("not known to be written", "token", token, "error", err)
	default:
		w.log.Info("written", "token", token)
	}
}

// put writes the value of the resource at url. It fails with a *lsn.StaleError
// if the fence has refused the token; after another error the value may have
// been written or not.
func put(ctx context.Context, url string, token lsn.LSN, value string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(value))
	if err != nil {
		return fmt.Errorf("write %s: %w", url, err)
	}
	req.Header.Set(tokenHeader, token.String())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err // says what was done, and to whom
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	var p problem
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxValue)).Decode(&p); err != nil {
		return fmt.Errorf("write %s: %s, without saying why: %w", url, resp.Status, err)
	}
	return fmt.Errorf("write %s: %w", url, p.asError())
}
