package main_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// ownAddress is an address of this machine off loopback. What it sends there stays inside.
func ownAddress(t testing.TB) string {
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addrs {
		if a, ok := a.(*net.IPNet); ok && a.IP.To4() != nil && a.IP.IsGlobalUnicast() {
			return a.IP.String()
		}
	}
	t.Skip("this machine has no IPv4 address off loopback")
	return ""
}

// publish lets the admin side of a node listen on all addresses, and returns the one off
// loopback, which others are told.
func publish(t testing.TB, n *procs.Node, host string, more ...string) (addr string) {
	text, err := os.ReadFile(n.ConfigFile)
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(n.AdminAddr)
	addr = net.JoinHostPort(host, port)
	lines := append([]string{strings.Replace(string(text), n.AdminAddr, "0.0.0.0:"+port, 1) +
		"advertise-admin: " + addr}, more...)
	require.NoError(t, os.WriteFile(n.ConfigFile, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return addr
}

const (
	operatorsToken = "correct-horse-battery-staple"
	readersToken   = "another-horse-of-another-color"
)

// TestOperatorsOverANetwork tell a cluster what to do, by certificates and by tokens; others do
// not, and nobody says a secret.
func TestOperatorsOverANetwork(t *testing.T) {
	t.Parallel()
	host, dir := ownAddress(t), t.TempDir()
	s, pki := layOut(t, 3, quick()), filepath.Join(dir, "pki")
	var told strings.Builder // all that commands said
	run := func(env []string, args ...string) (output string, code int) {
		stdout, stderr, code := bmqnodeWith(t, env, args...)
		told.WriteString(stdout + stderr)
		return stdout + stderr, code
	}
	write := func(name, text string) (path string) {
		path = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	_, code := run(nil, "certs", "--dir", pki, "--operator", "alice", "n1", "n2", "n3")
	require.Zero(t, code)
	_, code = run(nil, "certs", "--dir", dir+"/wasps", "--cluster", "wasps", "--operator", "alice")
	require.Zero(t, code)
	_, code = run(nil, "certs", "--dir", pki, "--operator", "late", "--valid", "1ns")
	require.Zero(t, code)
	tokens := write("tokens", "operate "+operatorsToken+"\nread "+readersToken+"\n")
	operator, reader := write("operator", operatorsToken), write("reader", readersToken)
	at := make([]string, 3)
	for i, n := range s.Nodes() {
		at[i] = publish(t, n, host, "tls-dir: "+filepath.Join(pki, n.Name), "admin-token-file: "+tokens)
	}
	require.NoError(t, s.Start())
	s.agree(s.Nodes(), nil)

	const all, role = "n1 n2 n3", "this needs the role "
	for _, c := range []struct {
		command, certificate, token string
		want                        string
		code                        int
	}{
		{"status", "", "", "it speaks TLS: give --tls-dir", 1},
		{"status", "", operator, "it speaks TLS: give --tls-dir", 1},
		{"status", pki, "", role + "read: show a certificate of 'bmqnode certs --operator NAME'", 1},
		{"status", pki + "/n1", "", all, 0},
		{"status", pki + "/operator/alice", "", all, 0},
		{"status", pki, reader, all, 0},
		{"transfer", pki + "/n1", "", role + "operate, and the certificate of a node has the role read", 1},
		{"transfer", pki, reader, role + "operate, and the token has the role read", 1},
		{"transfer", pki + "/operator/alice", "", "leads in term", 0},
		{"transfer", pki, operator, "leads in term", 0},
		{"transfer", pki + "/n1", operator, "leads in term", 0},
		{"status", dir + "/wasps/operator/alice", "", "x509: certificate signed by unknown authority", 1},
		{"status", pki + "/operator/late", "", "not accepted: x509: certificate has expired", 1},
		{"fault heal", pki + "/operator/alice", "", "every link is healed", 0},
		{"doctor", pki + "/operator/alice", "", "0 failures", 0},
		{"pause --for 1s", pki + "/operator/alice", "", "n3: elections are paused", 0},
		{"resume", pki + "/operator/alice", "", "n3: elections go on", 0},
	} {
		s.agree(s.Nodes(), nil)
		env := []string{"BMQNODE_TLS_DIR=" + c.certificate, "BMQNODE_TOKEN_FILE=" + c.token}
		output, code := run(env, append(strings.Fields(c.command), "--admin", at[1])...)
		require.Equal(t, c.code, code, "%v: %s", c, output)
		if c.want != all {
			require.Contains(t, output, c.want, c)
			continue
		}
		for node := range strings.FieldsSeq(all) {
			require.Regexp(t, node+" +(LEADER|FOLLOWER)|(LEADER|FOLLOWER) +"+node, output, c)
		}
	}
	follower := s.others(s.agree(s.Nodes(), nil).Leader)[0]
	output, code := run(nil, "transfer", "--admin", follower.AdminAddr, "--admin-token-file", operator)
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "it speaks TLS", "others are found, and asked without a token")

	s.renewsTokens(tokens, at[0], pki, operator)
	s.servesNewCertificate(at[0], pki)
	status, err := http.Get("http://" + s.Nodes()[0].AdminAddr + "/v1/status")
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(status.Body)
	require.NoError(t, err)
	require.NoError(t, status.Body.Close())
	told.Write(text)
	used := func(l procs.Line) bool { return strings.Contains(l.Text, "new certificate in use") }
	s.eventually("a line says so", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.lines, used)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		told.WriteString(l.Text + "\n")
	}
	for _, secret := range []string{operatorsToken, readersToken, "PRIVATE KEY"} {
		require.NotContains(t, told.String(), secret)
	}
}

// renewsTokens takes the right to operate from a token, while a node runs, and then from all.
func (s *scene) renewsTokens(file, addr, tlsDir, token string) {
	transfer := func() string {
		_, stderr, _ := bmqnodeWith(s.t.(*testing.T), nil, "transfer", "--admin", addr,
			"--tls-dir", tlsDir, "--admin-token-file", token)
		return stderr
	}
	require.NoError(s.t, os.WriteFile(file, []byte("operate"), 0o600))
	for _, n := range s.Nodes() {
		require.NoError(s.t, n.Signal(syscall.SIGHUP))
	}
	s.eventually("all say that the file is wrong", func() bool {
		for _, n := range s.Nodes() {
			if s.said(n.Name, "tokens not read again: the node goes on with those before", file) == 0 {
				return false
			}
		}
		return true
	})
	require.NotContains(s.t, transfer(), "the token is not this node's")
	require.NoError(s.t, os.WriteFile(file, []byte("operate something-else-altogether\n"), 0o600))
	for _, n := range s.Nodes() {
		require.NoError(s.t, n.Signal(syscall.SIGHUP))
	}
	s.eventually("the old token is refused", func() bool {
		return strings.Contains(transfer(), "the token is not this node's")
	})
	require.NoError(s.t, os.Remove(file))
	require.NoError(s.t, s.Nodes()[0].Signal(syscall.SIGHUP))
	s.eventually("no token is accepted", func() bool {
		return s.said(s.Nodes()[0].Name, "no token is accepted: the file has none", file) > 0
	})
}

// servesNewCertificate renews the certificates of nodes that run.
func (s *scene) servesNewCertificate(addr, pki string) {
	serial := func() string {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		require.NoError(s.t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	_, _, code := bmqnodeWith(s.t.(*testing.T), nil, "certs", "--dir", pki)
	require.Zero(s.t, code)
	require.NoError(s.t, s.Nodes()[0].Signal(syscall.SIGHUP))
	s.eventually("the node shows the new one", func() bool { return serial() != before })
}

// TestInsecureNodeIsForReading from other machines, and takes no token that others have read.
func TestInsecureNodeIsForReading(t *testing.T) {
	t.Parallel()
	host, dir := ownAddress(t), t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte(operatorsToken), 0o600))
	options := quick()
	delete(options, "rehearsal")
	s := layOut(t, 1, options)
	n := s.Nodes()[0]
	at := publish(t, n, host, "insecure: true", "admin-token-file: "+token)
	require.NoError(t, s.Start())
	s.agree(s.Nodes(), nil)
	stdout := does(t, "status", "--admin", at)
	require.Contains(t, stdout, "n1")
	stderr := fails(t, 1, "refused over a network without TLS: give the node --tls-dir", "step-down",
		"--admin", at, "--admin-token-file", token)
	require.Contains(t, stderr, "the token is not sent without TLS: give --tls-dir")
	for path, header := range map[string]string{"/v1/transfer": operatorsToken, "/v1/status": "x"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+header)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer http.DefaultClient.CloseIdleConnections()
		var p admin.Problem
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusForbidden, resp.StatusCode, p)
		require.Contains(t, string(text), "a token came over a network without TLS")
	}
	pki := filepath.Join(dir, "pki")
	does(t, "certs", "--dir", pki, "--operator", "alice")
	_, stderr, _ = bmqnode(t, "status", "--admin", at, "--tls-dir", pki+"/operator/alice")
	require.Contains(t, stderr, "it speaks no TLS: leave --tls-dir out")

	fails(t, 1, "this node makes no faults: it was not started with --rehearsal", "fault", "heal",
		"--admin", n.AdminAddr, "--admin-token-file", token)
}

// TestPlaintextOffLoopbackIsRefusedAtStart, and both ways out are named.
func TestPlaintextOffLoopbackIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	for flag, addr := range map[string]string{
		"gossip-addr": "0.0.0.0:0", "mesh-addr": "[::]:0", "advertise-gossip": "192.0.2.1:7400",
		"advertise-mesh": "n1.example:7401", "admin-addr": "0.0.0.0:0", "advertise-admin": "n1:7402",
	} {
		for _, command := range [][]string{{"run"}, {"run", "--check"}, {"exec", "true"}} {
			args := append([]string{command[0], "--node", "a", "--voters", "a", "--data-dir", t.TempDir(),
				"--" + flag, addr}, command[1:]...)
			stdout, stderr, code := bmqnode(t, args...)
			require.NotZero(t, code, args)
			for _, want := range []string{fmt.Sprintf("--%s", flag), addr,
				"'bmqnode certs --dir DIR NODE...'", "--tls-dir", "--insecure"} {
				require.Contains(t, stdout+stderr, want, args)
			}
		}
	}
}
