package admin

import (
	"crypto/tls"
	"net"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// secured is a listener that speaks TLS with other machines, and none over loopback and Unix
// sockets, where nobody can listen in. So each end knows by the address which it is to be.
type secured struct {
	net.Listener
	config *tls.Config
}

// withTLS secures a listener by the newest credentials.
func withTLS(ln net.Listener, newest func() *netmesh.Credentials) net.Listener {
	return secured{ln, &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &newest().Certificate, nil
		},
		ClientAuth: tls.RequestClientCert,
		// Server.byCertificate verifies the rest, and says what is wrong.
		VerifyConnection: func(s tls.ConnectionState) error { return certs.Check(s.PeerCertificates) },
		NextProtos:       []string{"http/1.1"},
		// A session would outlive the certificate that began it.
		SessionTicketsDisabled: true,
	}}
}

// Accept returns a connection whose handshake is still to come.
func (l secured) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || whence(conn) != network {
		return conn, err
	}
	return tls.Server(conn, l.config), nil
}

// closeNow closes a connection without waiting for its other end, as TLS does to say goodbye.
func closeNow(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	_ = conn.Close()
}
