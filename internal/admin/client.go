package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// Client asks the admin side of one node. It is safe for concurrent use.
type Client struct {
	addr string
	http http.Client
}

// NewClient returns a client for the admin side at addr (host:port).
func NewClient(addr string) *Client {
	// A transport of its own: closing idle connections must not touch others'.
	return &Client{addr: addr, http: http.Client{Transport: &http.Transport{}}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the node's status.
func (c *Client) Status(ctx context.Context) (cluster.Status, error) {
	var st cluster.Status
	err := c.do(ctx, http.MethodGet, "/v1/status", nil, &st)
	return st, c.checked(st, err)
}

// checked refuses the answer of a server that is no node.
func (c *Client) checked(st cluster.Status, err error) error {
	if err == nil && (st.Node == "" || len(st.Groups) == 0) {
		return fmt.Errorf("%s: this is no bmqnode: its status names no node and no election", c.addr)
	}
	return err
}

// Transfer asks the node to hand leadership over, to the best follower if to is
// "", and returns its status when that is done.
func (c *Client) Transfer(ctx context.Context, to cluster.NodeID) (cluster.Status, error) {
	var st cluster.Status
	err := c.do(ctx, http.MethodPost, "/v1/transfer", TransferRequest{To: to}, &st)
	return st, c.checked(st, err)
}

// Faults changes which links are cut on purpose, and returns those that are.
func (c *Client) Faults(ctx context.Context, req FaultRequest) (FaultStatus, error) {
	var st FaultStatus
	return st, c.do(ctx, http.MethodPost, "/v1/faults", req, &st)
}

// Events calls f with each event, in order, until ctx ends or the stream breaks.
// Before it calls f at all it calls ready, if that is not nil: no event after
// that is missed.
func (c *Client) Events(ctx context.Context, ready func(), f func(Event)) error {
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	resp, err := c.send(alive, http.MethodGet, "/v1/events", nil)
	if err != nil {
		return errors.Join(err, context.Cause(alive))
	}
	defer resp.Body.Close()
	if ready != nil {
		ready()
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		silence.Reset(maxSilence)
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("event from %s: %w", c.addr, err)
		}
		f(e)
	}
	if cause := context.Cause(alive); cause != nil {
		return fmt.Errorf("events from %s: %w", c.addr, cause)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("events from %s: %w", c.addr, err)
	}
	return nil
}

// maxSilence is after how long without a sign of life a stream is taken for dead.
const maxSilence = 5 * keepAlive / 2

var errSilent = fmt.Errorf("not a sign of life for %s", maxSilence)

// do sends a request and decodes the answer into out.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("answer of %s to %s %s: %w", c.addr, method, path, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+path, body)
	if err != nil {
		return nil, fmt.Errorf("admin address %q: %w", c.addr, err)
	}
	resp, err := c.http.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the path, which says nothing to people
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.addr, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, problem(c.addr, resp)
	}
	return resp, nil
}

// problem is the error that a node answered with.
func problem(addr string, resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	var p Problem
	if err := json.Unmarshal(data, &p); err == nil && p.Detail != "" {
		return fmt.Errorf("%s: %s", addr, p.Detail)
	}
	return fmt.Errorf("%s: HTTP %s: %s", addr, resp.Status, bytes.TrimSpace(data))
}
