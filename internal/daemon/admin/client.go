package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// Client asks the admin side of one node. Its methods are safe for concurrent use.
type Client struct {
	addr      string
	base      string // of URLs: scheme and host; with a Unix socket the host means nothing
	http      http.Client
	transport *http.Transport // a connection for each request: nothing is left to be closed
	token     string          // sent with every request, unless it is empty
	withheld  string          // why token is empty although the user has one
	unsafe    string          // why no secret may be sent to addr; "" if one may
}

// maxAnswer is the most bytes that are read of an answer, which may come from a stranger.
const maxAnswer = 16 << 20

// UnixPrefix begins the address of a Unix socket; its path follows.
const UnixPrefix = "unix:"

// CheckAddr returns what is wrong with an address that a user gave for the admin side of a node.
func CheckAddr(addr string) error {
	if path, ok := strings.CutPrefix(addr, UnixPrefix); ok && path != "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("the admin address is %q, but must be host:port or unix:PATH, such as "+
			"192.0.2.1:7402 or [2001:db8::1]:7402", addr)
	}
	return nil
}

// NewClient returns a client without credentials for the admin side at addr: host:port, or
// unix:PATH for a Unix socket.
func NewClient(addr string) *Client { return Credentials{}.Client(addr, "", true) }

func newClient(addr string) *Client {
	c := &Client{addr: addr, base: "http://" + addr}
	c.transport = &http.Transport{DisableKeepAlives: true}
	c.http.Transport = c.transport
	// No node redirects. A server that does may want to send the token to another address.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	if path, ok := strings.CutPrefix(addr, UnixPrefix); ok {
		c.base = "http://localhost"
		c.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return c
}

// Status asks for the node's status. If it has many elections, it sums them up.
func (c *Client) Status(ctx context.Context) (cluster.Status, error) {
	return c.StatusOf(ctx, cluster.Selection{})
}

// StatusOf asks for the node's status with the elections that are selected. Nodes choose Few, and
// an older node lists all.
func (c *Client) StatusOf(ctx context.Context, sel cluster.Selection) (
	st cluster.Status, err error,
) {
	query := queryOf(sel)
	if len(query) == 0 {
		return c.status(ctx, http.MethodGet, "/v1/status", nil)
	}
	err = c.do(ctx, http.MethodGet, "/v1/status?"+query.Encode(), nil, &st)
	if err == nil && st.Node == "" {
		err = c.noNode()
	}
	return st, err
}

// A Request tells a node to do something. It is the body of a POST.
type Request interface{ path() string }

func (TransferRequest) path() string  { return "/v1/transfer" }
func (StepDownRequest) path() string  { return "/v1/step-down" }
func (PreparedRequest) path() string  { return "/v1/prepared" }
func (PauseRequest) path() string     { return "/v1/pause" }
func (ResumeRequest) path() string    { return "/v1/resume" }
func (SettingsRequest) path() string  { return "/v1/settings" }
func (ForgetRequest) path() string    { return "/v1/forget" }
func (FaultRequest) path() string     { return "/v1/faults" }
func (VotersRequest) path() string    { return "/v1/voters" }
func (GossipKeyRequest) path() string { return "/v1/gossip-key" }

// Tell sends a request and returns the node's status after it was carried out; after a
// FaultRequest, only its Faults, and of an election that was opened or closed only that. It sends
// no key if TakesKeys returns an error.
func (c *Client) Tell(ctx context.Context, req Request) (st cluster.Status, err error) {
	switch req.(type) {
	case FaultRequest:
		err = c.do(ctx, http.MethodPost, req.path(), req, &st)
		return st, err
	case OpenRequest, CloseRequest:
		method := http.MethodPost
		if _, ends := req.(CloseRequest); ends {
			method = http.MethodDelete
		}
		st.Groups = make([]cluster.GroupStatus, 1)
		err = c.do(ctx, method, req.path(), req, &st.Groups[0])
		return st, err
	case GossipKeyRequest:
		if err := c.TakesKeys(); err != nil {
			return st, err
		}
	}
	return c.status(ctx, http.MethodPost, req.path(), req)
}

// TakesKeys returns why no key may be sent to this address; see Credentials.Client.
func (c *Client) TakesKeys() error {
	if c.unsafe == "" {
		return nil
	}
	return fmt.Errorf("%s: a key is %s", c.addr, c.unsafe)
}

// status sends a request to which a node answers with its status. The error says so if the
// server is no node.
func (c *Client) status(ctx context.Context, method, path string, in any) (st cluster.Status,
	err error) {
	err = c.do(ctx, method, path, in, &st)
	if err == nil && (st.Node == "" || len(st.Groups) == 0) {
		err = c.noNode()
	}
	return st, err
}

func (c *Client) noNode() error {
	return fmt.Errorf("%s: this is no bmqnode: its status names no node and no election", c.addr)
}

// Recording returns what the node has recorded.
func (c *Client) Recording(ctx context.Context) (r Recording, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/recording", nil, &r)
	return r, err
}

// Confirm returns the leader of an election, if it is this node and a quorum confirms it.
func (c *Client) Confirm(ctx context.Context, group string) (l Leader, err error) {
	path := "/v1/elections/" + url.PathEscape(group) + "/leader?confirm"
	err = c.do(ctx, http.MethodGet, path, nil, &l)
	return l, err
}

// History returns the leaderships that the node has seen.
func (c *Client) History(ctx context.Context) (h History, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/history", nil, &h)
	return h, err
}

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
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	return c.sendBytes(ctx, method, path, body, nil)
}

func (c *Client) sendBytes(ctx context.Context, method, path string, body []byte, h http.Header) (
	*http.Response, error,
) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("admin address %q: %w", c.addr, err)
	}
	maps.Copy(req.Header, h)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the path, which says nothing to people
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		err = dial.Err // without the address, which is said below
	}
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return nil, fmt.Errorf("%s: it speaks no TLS: leave --tls-dir out, if it is to be so", c.addr)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.addr, err)
	case resp.StatusCode != http.StatusOK:
		return nil, c.problem(resp)
	}
	return resp, nil
}

// refusedPlain is in the answer of package net/http to a request without TLS.
const refusedPlain = "HTTP request to an HTTPS server"

// problem is the error with which a node answered.
func (c *Client) problem(resp *http.Response) error {
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	var p Problem
	withheld := ""
	denied := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	if denied && c.withheld != "" {
		withheld = "; " + c.withheld
	}
	if err := decode(bytes.NewReader(data), &p); err == nil && p.Detail != "" {
		return fmt.Errorf("%s: %s%s", c.addr, p.Detail, withheld)
	}
	if strings.Contains(string(data), refusedPlain) {
		return fmt.Errorf("%s: it speaks TLS: give --tls-dir", c.addr)
	}
	return fmt.Errorf("%s: HTTP %s: %s%s", c.addr, words.Printable(resp.Status, maxBody),
		words.Printable(strings.TrimSpace(string(data)), maxBody), withheld)
}

// Figures are a node's metrics at a moment.
type Figures struct {
	// Values are the samples by series, as /metrics writes these: name{label="value"}.
	Values map[string]float64
	// AheadLeast and AheadMost bound by how much the node's wall clock is ahead of this
	// machine's. The answer has the time in whole seconds, so the bounds are more than 1 s apart.
	AheadLeast, AheadMost time.Duration
}

// Figures returns the node's metrics.
func (c *Client) Figures(ctx context.Context) (f Figures, err error) {
	sent, values := time.Now(), map[string]float64{}
	resp, err := c.send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return f, err
	}
	defer resp.Body.Close()
	// The node read its clock between sent and now, and cut the time to seconds.
	if told, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		f.AheadLeast, f.AheadMost = time.Until(told), told.Add(time.Second).Sub(sent)
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxAnswer))
	for lines.Scan() {
		line := words.Printable(lines.Text(), maxAnswer)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return f, fmt.Errorf("metrics of %s: a sample is %q, but must be a series and a number", c.addr,
				line)
		}
		values[line[:at]] = value
	}
	f.Values = values
	return f, lines.Err()
}

// decode reads a JSON value of a server, which may be a stranger's, into out. All texts are made
// printable here, because they end up on terminals.
func decode(r io.Reader, out any) error {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return err
	}
	text, err := json.Marshal(withPrintable(value))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

func withPrintable(value any) any {
	switch v := value.(type) {
	case string:
		return words.Printable(v, maxAnswer)
	case []any:
		for i := range v {
			v[i] = withPrintable(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, of := range v {
			clean[words.Printable(name, maxAnswer)] = withPrintable(of)
		}
		return clean
	}
	return value
}
