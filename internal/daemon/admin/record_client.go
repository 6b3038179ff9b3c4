package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Record returns the newest committed record of an election that the node knows, without its
// voters.
func (c *Client) Record(ctx context.Context, group string) (rec Record, err error) {
	resp, err := c.send(ctx, http.MethodGet, recordPath(group), nil)
	if err != nil {
		return rec, err
	}
	defer resp.Body.Close()
	rec.Group = group
	rec.Value, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		rec.ValueLSN, err = lsn.Parse(strings.Trim(resp.Header.Get("ETag"), `"`))
	}
	if err == nil {
		rec.LSN, err = lsn.Parse(resp.Header.Get(recordHeader))
	}
	if err != nil {
		err = fmt.Errorf("record of %s: %w", c.addr, err)
	}
	return rec, err
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

// Voters returns the voters of an election as the node knows them.
func (c *Client) Voters(ctx context.Context, group string) (v Voters, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/voters?"+url.Values{"group": {group}}.Encode(), nil, &v)
	return v, err
}

// ChangeVoters lets the node change the voters of its elections, and calls step for each step. It
// returns when the last change is committed, or why it is not.
func (c *Client) ChangeVoters(
	ctx context.Context, req VotersRequest, step func(cluster.VoterStep),
) error {
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	resp, err := c.sendBytes(ctx, http.MethodPost, req.path(), body,
		http.Header{"Accept": {eventStream}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	ended := fmt.Errorf("%s: the answer broke off: the change may go on, and can be repeated", c.addr)
	err = readEvents(resp.Body, func() {}, func(kind, _ string, data io.Reader) (err error) {
		switch kind {
		case "step":
			var s cluster.VoterStep
			if err = decode(data, &s); err == nil {
				step(s)
			}
		case "done":
			ended = nil
		case "problem":
			var p Problem
			if err = decode(data, &p); err == nil {
				ended = fmt.Errorf("%s: %s", c.addr, p.Detail)
			}
		}
		return err
	})
	return errors.Join(err, ended)
}
