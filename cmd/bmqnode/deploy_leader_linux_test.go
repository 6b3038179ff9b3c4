package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// leaderService runs the proxy of leader.yaml, as it stands except for the addresses and TLS,
// and returns what tells whether a node is whom it reaches, and that node leads.
// Without a proxy on this machine it is not looked at, and always so.
func (p *pods) leaderService() (reaches func(cluster.NodeID) bool) {
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		p.t.Log("no haproxy here, so the Service for the leader is not tested; it comes with Debian's package haproxy")
		return func(cluster.NodeID) bool { return true }
	}
	host := ownLoopback(8)
	config := theManifest(p.t, "leader.yaml")["ConfigMap"].Data["haproxy.cfg"]
	config = strings.ReplaceAll(config, "bind :", "bind "+host+":")
	const secure = " check-ssl verify required ca-file /etc/haproxy-ca/ca.crt"
	require.Contains(p.t, config, secure)
	config = strings.ReplaceAll(config, secure, "") // on loopback nodes speak no TLS
	for _, one := range p.all() {
		name := one.name + "." + p.set.Spec.ServiceName + ".default.svc.cluster.local"
		require.Contains(p.t, config, " "+name+":7402\n")
		config = strings.ReplaceAll(config, name, one.ip)
	}
	own := &pod{pods: p, root: p.t.TempDir()}
	own.write("haproxy.cfg", config)
	launched(p.t, exec.Command(haproxy, "-db", "-f", filepath.Join(own.root, "haproxy.cfg")))
	return func(node cluster.NodeID) bool {
		st, err := statusAt(p.t, host+":8080")
		return err == nil && st.Node == node && st.Groups[0].Leading
	}
}
