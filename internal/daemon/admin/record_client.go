package admin

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Record returns the newest committed record of an election that the node knows; with newest, that
// there is, which only the leader can say.
func (c *Client) Record(ctx context.Context, group string, newest bool) (rec Record, err error) {
	path := recordPath(group)
	if newest {
		path += "&newest"
	}
	h := http.Header{"Accept": {"application/json"}}
	resp, err := c.sendBytes(ctx, http.MethodGet, path, nil, h)
	if err != nil {
		return rec, err
	}
	defer resp.Body.Close()
	return rec, decode(io.LimitReader(resp.Body, maxAnswer), &rec)
}

// Publish replaces the value of an election's record, if it has the LSN ifMatch now, or in any case
// if that is nil. It returns the LSN of the new value.
func (c *Client) Publish(ctx context.Context, group string, value []byte, ifMatch *lsn.LSN) (
	done Published, err error,
) {
	h := http.Header{"Content-Type": {"application/octet-stream"}}
	if ifMatch != nil {
		h.Set("If-Match", entityTag(*ifMatch))
	}
	resp, err := c.sendBytes(ctx, http.MethodPut, recordPath(group), value, h)
	if err != nil {
		return done, err
	}
	defer resp.Body.Close()
	return done, decode(resp.Body, &done)
}

func recordPath(group string) string {
	return "/v1/record?" + url.Values{"group": {group}}.Encode()
}

// ChangeVoters lets the node change the voters of its elections, and calls step for each step. It
// returns when the last change is committed, or why it is not.
func (c *Client) ChangeVoters(
	ctx context.Context, req VotersRequest, step func(cluster.VoterStep),
) error {
	resp, err := c.send(ctx, http.MethodPost, req.path(), req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var said struct {
			cluster.VoterStep
			Problem
		}
		if err := decode(bytes.NewReader(lines.Bytes()), &said); err != nil {
			return fmt.Errorf("%s: the answer broke off, and can be repeated: %w", c.addr, err)
		}
		if said.Detail != "" {
			return fmt.Errorf("%s: %s", c.addr, said.Detail)
		}
		step(said.VoterStep)
	}
	return lines.Err()
}
