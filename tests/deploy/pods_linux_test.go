package deploy

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// manifest is as much of a Kubernetes object as running its pods takes.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		ServiceName string `yaml:"serviceName"`
		Replicas    int
		Template    struct{ Spec podSpec }
		Containers  []container // of a Pod
	}
}

type podSpec struct {
	TerminationGracePeriodSeconds int             `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               securityContext `yaml:"securityContext"`
	Containers                    []container
}

type securityContext struct {
	RunAsUser  int `yaml:"runAsUser"`
	RunAsGroup int `yaml:"runAsGroup"`
}

type container struct {
	Command, Args []string
	Env           []struct {
		Name, Value string
		ValueFrom   struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	ReadinessProbe probe `yaml:"readinessProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	VolumeMounts   []struct {
		Name        string
		MountPath   string `yaml:"mountPath"`
		SubPathExpr string `yaml:"subPathExpr"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// theManifest are the objects of a manifest, by kind.
func theManifest(t *testing.T, name string) map[string]manifest {
	text, err := os.ReadFile(recipes + "kubernetes/" + name)
	require.NoError(t, err)
	kinds := map[string]manifest{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var m manifest
		require.NoError(t, yaml.Unmarshal([]byte(doc+"\n"), &m))
		kinds[m.Kind] = m
	}
	return kinds
}

// pods stands in for the cluster: it gives each pod of the set an address, a name
// that resolves, the image's file system, the configuration, and a volume.
type pods struct {
	t      *testing.T
	image  image
	set    manifest
	config map[string]string
	pki    string
	byName map[string]*pod
}

type pod struct {
	*pods
	name, ip, root string
	running        *nodes.Launched
}

func schedule(t *testing.T, img image) *pods {
	kinds := theManifest(t, "bmqnode.yaml")
	p := &pods{t: t, image: img, set: kinds["StatefulSet"], config: kinds["ConfigMap"].Data,
		pki: t.TempDir(), byName: map[string]*pod{}}
	require.Equal(t, p.spec().SecurityContext, securityContext{img.uid, img.gid},
		"the image's user owns its files")
	for range p.set.Spec.Replicas {
		p.more()
	}
	return p
}

// more adds the next pod, as scaling the set up does.
func (p *pods) more() *pod {
	i := len(p.byName)
	name := fmt.Sprintf("%s-%d", p.set.Metadata.Name, i)
	// Beside the image, so that the binary can be a link to that.
	root, err := os.MkdirTemp(filepath.Dir(p.image.root), name+"-")
	require.NoError(p.t, err)
	require.NoError(p.t, os.Chmod(root, 0o755))
	one := &pod{pods: p, name: name, ip: ownLoopback(1 + i), root: root}
	p.byName[name] = one
	one.furnish()
	p.resolve()
	return one
}

func (p *pods) spec() podSpec { return p.set.Spec.Template.Spec }

func (p *pods) container() container { return p.spec().Containers[0] }

func (p *pods) all() []*pod {
	return slices.SortedFunc(maps.Values(p.byName),
		func(a, b *pod) int { return strings.Compare(a.name, b.name) })
}

// resolve lets every pod know the addresses of all, as DNS would.
func (p *pods) resolve() {
	var hosts strings.Builder
	for _, one := range p.all() {
		fmt.Fprintf(&hosts, "%s %s.%s\n", one.ip, one.name, p.set.Spec.ServiceName)
	}
	for _, one := range p.all() {
		writeIn(p.t, one.root, "etc/hosts", hosts.String())
	}
}

// furnish fills the pod's file system: image, volumes, resolver.
func (p *pod) furnish() {
	binary := filepath.Join("usr", "bin", "bmqnode")
	require.NoError(p.t, os.MkdirAll(filepath.Join(p.root, "usr", "bin"), 0o755))
	require.NoError(p.t, os.Link(filepath.Join(p.image.root, binary), filepath.Join(p.root, binary)))
	writeIn(p.t, p.root, "etc/nsswitch.conf", "hosts: files\n")
	timers := ""
	for _, option := range []string{"initial-wait", "max-random-wait", "heartbeat-broadcast",
		"heartbeat-miss-count", "lease"} {
		timers += fmt.Sprintf("%s: %v\n", option, nodes.Quick()[option])
	}
	for _, mount := range p.container().VolumeMounts {
		dir := filepath.Join(p.root, mount.MountPath)
		require.NoError(p.t, os.MkdirAll(dir, 0o755))
		if mount.Name == "tls" {
			require.Equal(p.t, "$(POD_NAME)", mount.SubPathExpr, "no other pod's key")
			p.secret(dir)
			continue
		}
		if mount.Name != "config" {
			require.NoError(p.t, chown(dir, p.image.uid, p.image.gid))
			continue
		}
		for name, text := range p.config {
			writeIn(p.t, dir, name, text+timers)
		}
	}
}

// secret fills the volume of certificates, as the commands at the head of the manifest do.
func (p *pod) secret(dir string) {
	nodes.Does(p.t, "certs", "--dir", p.pki, "--cluster", "bmqnode", p.name)
	out, err := exec.Command("cp", "-r", filepath.Join(p.pki, p.name)+"/.", dir).CombinedOutput()
	require.NoError(p.t, err, "%s", out)
	require.NoError(p.t, chown(dir, p.image.uid, p.image.gid))
}

// start runs the pod's container.
func (p *pod) start() {
	var env, expand []string
	for _, v := range p.container().Env {
		value := map[string]string{"metadata.name": p.name, "status.podIP": p.ip,
			"": strings.NewReplacer(expand...).Replace(v.Value)}[v.ValueFrom.FieldRef.FieldPath]
		require.NotEmpty(p.t, value, v.Name)
		env = append(env, v.Name+"="+value)
		expand = append(expand, "$("+v.Name+")", value)
	}
	args := slices.Clone(p.image.entrypoint)
	for _, arg := range p.container().Args {
		args = append(args, strings.NewReplacer(expand...).Replace(arg))
	}
	own := p.image
	own.root = p.root
	cmd := own.command(args...)
	cmd.Env = env
	p.running = nodes.Launch(p.t, cmd)
}

// terminate ends the pod as the kubelet does.
func (p *pod) terminate() {
	p.t.Helper()
	grace := time.AfterFunc(time.Duration(p.spec().TerminationGracePeriodSeconds)*time.Second,
		func() { _ = p.running.Process.Kill() })
	defer grace.Stop()
	require.NoError(p.t, p.running.Process.Signal(syscall.SIGTERM))
	require.Zero(p.t, p.running.Code(p.t))
}

// passes asks a probe as the kubelet does, but on loopback, where nodes speak no TLS.
func (p *pod) passes(pr probe) bool {
	client := http.Client{Timeout: 2 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + p.addr(pr.HTTPGet.Port) + pr.HTTPGet.Path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// addr is the address of a named port.
func (p *pod) addr(port string) string {
	for _, named := range p.container().Ports {
		if named.Name == port {
			return net.JoinHostPort(p.ip, strconv.Itoa(named.ContainerPort))
		}
	}
	p.t.Fatalf("no port is called %s", port)
	return ""
}

// operate runs the command of operator.yaml, in the pod's file system. It goes by addresses and
// without a certificate: on loopback, where these pods are, nodes want neither names nor TLS.
func (p *pod) operate(words ...string) {
	operator := theManifest(p.t, "operator.yaml")["Pod"].Spec.Containers[0].Command
	own := p.image
	own.root = p.root
	if len(words) > 0 { // in the place of the last one
		operator = append(operator[:len(operator)-1:len(operator)-1], words...)
	}
	line := strings.Join(operator, "\n")
	for _, one := range p.all() {
		line = strings.ReplaceAll(line, one.name+"."+p.set.Spec.ServiceName, one.ip)
	}
	out, err := own.command(strings.Split(line, "\n")...).CombinedOutput()
	require.NoError(p.t, err, "%s", out)
}

func (p *pods) eventually(what string, cond func() bool) {
	p.t.Helper()
	require.Eventually(p.t, cond, nodes.Patience, 20*time.Millisecond, what)
}

// voters is how many voters the pod knows.
func (p *pod) voters() int {
	st, ok := statusAt(p.t, p.addr("http"))
	if !ok {
		return 0
	}
	return len(st.Groups[0].Voters)
}

// leader is the leader that the pod knows; "" for none.
func (p *pod) leader() cluster.NodeID {
	st, ok := statusAt(p.t, p.addr("http"))
	if !ok {
		return ""
	}
	return st.Groups[0].Leader
}

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
	file := writeIn(p.t, p.t.TempDir(), "haproxy.cfg", config)
	nodes.Launch(p.t, exec.Command(haproxy, "-db", "-f", file))
	return func(node cluster.NodeID) bool {
		st, ok := statusAt(p.t, host+":8080")
		return ok && st.Node == node && st.Groups[0].Leading
	}
}

func TestThePodsElectALeaderAndKeepTheirNames(t *testing.T) {
	t.Parallel()
	p := schedule(t, theImage(t))
	first := p.all()[0]
	first.start()
	p.eventually("alone it lives", func() bool { return first.passes(p.container().LivenessProbe) })
	require.False(t, first.passes(p.container().ReadinessProbe), "but is not ready")
	for _, one := range p.all()[1:] {
		one.start()
	}
	for _, one := range p.all() {
		p.eventually(one.name+" is ready",
			func() bool { return one.passes(p.container().ReadinessProbe) })
	}

	before := first.leader()
	first.operate()
	p.eventually("another leads", func() bool { l := first.leader(); return l != "" && l != before })

	old := first.leader()
	throughService := p.leaderService()
	p.eventually("the Service reaches the leader", func() bool { return throughService(old) })

	// The pod of the leader moves to another machine: its volume follows, its
	// address is new.
	moved := p.byName[string(old)]
	require.NotNil(t, moved, "the nodes have the pods' names; the leader is %q", old)
	moved.terminate()
	for _, one := range p.all() {
		if one != moved {
			p.eventually(one.name+" has another leader", func() bool {
				l := one.leader()
				return l != "" && l != old
			})
		}
	}
	p.eventually("the Service reaches the new leader", func() bool {
		return slices.ContainsFunc(p.all(), func(one *pod) bool {
			return one != moved && throughService(cluster.NodeID(one.name))
		})
	})
	moved.ip = ownLoopback(9)
	p.resolve()
	moved.start()
	p.eventually(moved.name+" is ready again",
		func() bool { return moved.passes(p.container().ReadinessProbe) })
	require.NotEqual(t, old, moved.leader(), "it follows")

	// The set is scaled up, and down again.
	fourth := p.more()
	fourth.start()
	p.eventually("the new pod is ready",
		func() bool { return fourth.passes(p.container().ReadinessProbe) })
	fourth.operate("voters", "add", fourth.name)
	p.eventually("it has a vote", func() bool { return moved.voters() == 4 && fourth.voters() == 4 })
	first.operate("voters", "remove", fourth.name)
	p.eventually("it has none", func() bool { return moved.voters() == 3 && fourth.voters() == 3 })
	for _, one := range p.all() {
		one.terminate()
	}
}

func TestTheManifestAgreesWithItself(t *testing.T) {
	kinds := theManifest(t, "bmqnode.yaml")
	set := kinds["StatefulSet"]
	var config struct{ Voters, Join []string }
	require.NoError(t, yaml.Unmarshal([]byte(kinds["ConfigMap"].Data["bmqnode.yaml"]), &config))
	require.Equal(t, kinds["Service"].Metadata.Name, set.Spec.ServiceName)
	require.Len(t, config.Voters, set.Spec.Replicas)
	for i, voter := range config.Voters {
		require.Equal(t, fmt.Sprintf("%s-%d", set.Metadata.Name, i), voter)
		require.Equal(t, fmt.Sprintf("%s.%s:7400", voter, set.Spec.ServiceName), config.Join[i])
	}
}
