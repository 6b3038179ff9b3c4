package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
)

// Client asks the admin side of one node. Its methods are safe for concurrent use.
type Client struct {
	addr    string
	base    string // of addresses: with a Unix socket, the host says nothing
	token   string
	noToken string // why there is no token; see WithoutToken
	http    http.Client
}

// maxAnswer bounds what is read of an answer: it may be a stranger's.
const maxAnswer = 16 << 20 // bytes

// unixPrefix begins the address of a Unix socket; its path follows.
const unixPrefix = "unix:"

// NewClient returns a client for the admin side at addr: host:port, or
// unix:PATH for a Unix socket.
func NewClient(addr string) *Client {
	// A transport of its own: closing idle connections must not touch others'.
	transport := &http.Transport{}
	c := &Client{addr: addr, base: "http://" + addr, http: http.Client{Transport: transport}}
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return c
}

// UseToken lets the client send a token with every request; "" is none. It is to
// be called before the first request.
func (c *Client) UseToken(token string) { c.token = token }

// WithoutToken says why this client has no token; the error of a request that needs one
// has it. It is to be called before the first request.
func (c *Client) WithoutToken(why string) { c.noToken = why }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the node's status.
func (c *Client) Status(ctx context.Context) (cluster.Status, error) {
	return c.status(ctx, http.MethodGet, "/v1/status", nil)
}

// Transfer asks the node to hand leadership over, and returns its status when that
// is done.
func (c *Client) Transfer(ctx context.Context, req TransferRequest) (cluster.Status, error) {
	return c.status(ctx, http.MethodPost, "/v1/transfer", req)
}

// StepDown lets the node step down, and returns its status when it does not lead any more.
func (c *Client) StepDown(ctx context.Context, req StepDownRequest) (cluster.Status, error) {
	return c.status(ctx, http.MethodPost, "/v1/step-down", req)
}

// Forget makes the node accept the next process of another node's name, and returns its
// status then: see cluster.Node.Forget.
func (c *Client) Forget(ctx context.Context, req ForgetRequest) (cluster.Status, error) {
	return c.status(ctx, http.MethodPost, "/v1/forget", req)
}

// status sends a request that is answered with a status. It refuses the answer of a
// server that is no node.
func (c *Client) status(ctx context.Context, method, path string, in any) (st cluster.Status,
	err error) {
	err = c.do(ctx, method, path, in, &st)
	if err == nil && (st.Node == "" || len(st.Groups) == 0) {
		err = fmt.Errorf("%s: this is no bmqnode: its status names no node and no election", c.addr)
	}
	return st, err
}

// Faults changes which links are cut on purpose, and returns those that are.
func (c *Client) Faults(ctx context.Context, req FaultRequest) (FaultStatus, error) {
	var st FaultStatus
	return st, c.do(ctx, http.MethodPost, "/v1/faults", req, &st)
}

// do sends a request and decodes the answer into out.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := decode(io.LimitReader(resp.Body, maxAnswer), out); err != nil {
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
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("admin address %q: %w", c.addr, err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
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
		err := c.problem(resp)
		if resp.StatusCode == http.StatusUnauthorized && c.noToken != "" {
			err = fmt.Errorf("%w; %s", err, c.noToken)
		}
		return nil, err
	}
	return resp, nil
}

// problem is the error that a node answered with.
func (c *Client) problem(resp *http.Response) error {
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	var p Problem
	if err := decode(bytes.NewReader(data), &p); err == nil && p.Detail != "" {
		return fmt.Errorf("%s: %s", c.addr, p.Detail)
	}
	return fmt.Errorf("%s: HTTP %s: %s", c.addr, printable(resp.Status),
		printable(strings.TrimSpace(string(data))))
}
