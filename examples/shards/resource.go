package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/shards"
	"github.com/bmqelect/bmqelect/lsn"
)

// resource is what all shards write to. It refuses old tokens, and notices who works at once.
type resource struct {
	mu                        sync.Mutex // guards the rest
	shards                    []file
	writes, refused, overlaps int
}

// file is what one shard writes to.
type file struct {
	fence lsn.Fence
	owner cluster.NodeID // who works now; "" for nobody
}

func newResource(n int) *resource { return &resource{shards: make([]file, n)} }

// snippet: shard
// work is the work of a shard's owner: it writes every few seconds, each time with a new token.
func (r *resource) work(ctx context.Context, id cluster.NodeID, s shards.Shard) error {
	r.owns(s.Number, id)
	defer r.owns(s.Number, "")
	for {
		token, err := s.Token()
		if err != nil {
			return err // the lease has ended
		}
		if err := r.write(s.Number, token); err != nil {
			return err // another node takes this shard, and this one rests
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return ctx.Err() // canceled before the lease ends
		}
	}
}

// end

// owns notes who works on a shard from now on; "" for nobody.
func (r *resource) owns(shard int, id cluster.NodeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id != "" && r.shards[shard].owner != "" {
		r.overlaps++
	}
	r.shards[shard].owner = id
}

func (r *resource) write(shard int, token lsn.LSN) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.shards[shard].fence.AdmitNew(token)
	if err != nil {
		r.refused++
	} else {
		r.writes++
	}
	return err
}

// owners says who works on each shard.
func (r *resource) owners() (all []cluster.NodeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.shards {
		all = append(all, r.shards[i].owner)
	}
	return all
}

// loads says on how many shards each node works, and how many have nobody.
func (r *resource) loads() (loads map[cluster.NodeID]int, without int) {
	loads = map[cluster.NodeID]int{}
	for _, id := range r.owners() {
		loads[id]++
	}
	without = loads[""]
	delete(loads, "")
	return loads, without
}

// verdict is an error if two nodes worked on a shard at once.
func (r *resource) verdict(out io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(out, "%d writes, %d refused, %d overlaps\n", r.writes, r.refused, r.overlaps)
	if r.overlaps > 0 {
		return errors.New("two nodes worked on a shard at once")
	}
	return nil
}
