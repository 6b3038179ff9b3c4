package main_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

const (
	operatorsToken = "correct-horse-battery-staple"
	readersToken   = "another-horse-of-another-color"
)

// Operators command a cluster over a network by certificates and by tokens. Nobody else can, and
// nothing that is said has a secret in it.
func TestOperatorsOverANetwork(t *testing.T) {
	t.Parallel()
	host, dir := nodes.OwnAddress(t), t.TempDir()
	s, pki := nodes.LayOut(t, nodes.Quick(), procs.Numbered(3)...), filepath.Join(dir, "pki")
	var told strings.Builder // all that commands said
	run := func(env []string, args ...string) (output string, code int) {
		stdout, stderr, code := nodes.RunWith(t, env, args...)
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
		at[i] = nodes.Publish(t, n, host, "admin-token-file: "+tokens)
		nodes.Encrypt(t, n, pki)
	}
	require.NoError(t, s.Start())
	s.Agree(s.Nodes(), nil)

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
		s.Agree(s.Nodes(), nil)
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
	follower := s.Others(s.Agree(s.Nodes(), nil).Leader)[0]
	output, code := run(nil, "transfer", "--admin", follower.AdminAddr, "--admin-token-file", operator)
	require.Equal(t, 1, code, output)
	require.Contains(t, output, "it speaks TLS", "others are found, and asked without a token")

	renewsTokens(s, tokens, at[0], pki, operator)
	servesNewCertificate(s, at[0], pki)
	status, err := http.Get("http://" + s.Nodes()[0].AdminAddr + "/v1/status")
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(status.Body)
	require.NoError(t, err)
	require.NoError(t, status.Body.Close())
	told.Write(text)
	s.Eventually("a line says so", func() bool { return s.Said("n1", "new certificate in use") > 0 })
	for _, l := range s.Lines() {
		told.WriteString(l.Text + "\n")
	}
	for _, secret := range []string{operatorsToken, readersToken, "PRIVATE KEY"} {
		require.NotContains(t, told.String(), secret)
	}
}

// renewsTokens takes the right to operate from a token while nodes run.
func renewsTokens(s *nodes.Scene, file, addr, tlsDir, token string) {
	transfer := func() string {
		_, stderr, _ := nodes.Run(s.T, "transfer", "--admin", addr,
			"--tls-dir", tlsDir, "--admin-token-file", token)
		return stderr
	}
	write := func(text string) {
		require.NoError(s.T, os.WriteFile(file, []byte(text), 0o600))
		for _, n := range s.Nodes() {
			require.NoError(s.T, n.Signal(syscall.SIGHUP))
		}
	}
	write("operate")
	for _, n := range s.Nodes() {
		s.Eventually("all say that the file is wrong", func() bool {
			return s.Said(n.Name, "tokens not read again: the node goes on with those before", file) > 0
		})
	}
	require.NotContains(s.T, transfer(), "the token is not this node's")
	write("operate something-else-altogether\n")
	s.Eventually("the old token is refused", func() bool {
		return strings.Contains(transfer(), "the token is not this node's")
	})
}

// servesNewCertificate spoils the certificate of a node that runs, and renews it then.
func servesNewCertificate(s *nodes.Scene, addr, pki string) {
	serial := func() string {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		require.NoError(s.T, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	own := filepath.Join(pki, "n1", "tls.crt")
	require.NoError(s.T, os.Truncate(own, 0))
	require.NoError(s.T, s.Nodes()[0].Signal(syscall.SIGHUP))
	s.Eventually("the node says that it goes on with the old one", func() bool {
		return s.Said("n1", "--tls-dir not read again: the node goes on with what it had", own) > 0 &&
			s.Said("n1", "finding", "goes on with the certificate") > 0
	})
	require.Equal(s.T, before, serial())
	require.NoError(s.T, os.RemoveAll(filepath.Dir(own)))
	nodes.Does(s.T, "certs", "--dir", pki, "n1", "n2", "n3")
	require.NoError(s.T, s.Nodes()[0].Signal(syscall.SIGHUP))
	s.Eventually("the node shows the new one", func() bool { return serial() != before })
}

// A node without TLS can only be read from other machines. It takes no token there: others may
// have read it.
func TestInsecureNodeIsForReading(t *testing.T) {
	t.Parallel()
	host, dir := nodes.OwnAddress(t), t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte(operatorsToken), 0o600))
	options := nodes.Quick()
	delete(options, "rehearsal")
	s := nodes.LayOut(t, options, procs.Numbered(1)...)
	n := s.Nodes()[0]
	at := nodes.Publish(t, n, host, "insecure: true", "admin-token-file: "+token)
	require.NoError(t, s.Start())
	s.Agree(s.Nodes(), nil)
	stdout := nodes.Does(t, "status", "--admin", at)
	require.Contains(t, stdout, "n1")
	stderr := nodes.Fails(t, 1, "refused over a network without TLS: give the node --tls-dir", "step-down",
		"--admin", at, "--admin-token-file", token)
	require.Contains(t, stderr, "the token is not sent without TLS: give --tls-dir")
	pki := filepath.Join(dir, "pki")
	nodes.Does(t, "certs", "--dir", pki, "--operator", "alice")
	_, stderr, _ = nodes.Run(t, "status", "--admin", at, "--tls-dir", pki+"/operator/alice")
	require.Contains(t, stderr, "it speaks no TLS: leave --tls-dir out")

	nodes.Fails(t, 1, "this node makes no faults: it was not started with --rehearsal", "fault", "heal",
		"--admin", n.AdminAddr, "--admin-token-file", token)
}

// Plain text off loopback is refused at the start, and both ways out are named.
func TestPlaintextOffLoopbackIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	for flag, addr := range map[string]string{
		"gossip-addr": "0.0.0.0:0", "mesh-addr": "[::]:0", "advertise-gossip": "192.0.2.1:7400",
		"advertise-mesh": "n1.example:7401", "admin-addr": "0.0.0.0:0", "advertise-admin": "n1:7402",
	} {
		for _, command := range [][]string{{"run"}, {"run", "--check"}, {"exec", "true"}} {
			args := append([]string{command[0], "--node", "a", "--voters", "a", "--data-dir", t.TempDir(),
				"--" + flag, addr}, command[1:]...)
			stdout, stderr, code := nodes.Run(t, args...)
			require.NotZero(t, code, args)
			for _, want := range []string{fmt.Sprintf("--%s", flag), addr,
				"'bmqnode certs --dir DIR NODE...'", "--tls-dir", "--insecure"} {
				require.Contains(t, stdout+stderr, want, args)
			}
		}
	}
}
