package main

import (
	"crypto/ecdsa"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// host is where a node runs: a network namespace, a disk, a control group, as far as a failure
// needs them.
type host struct {
	index      int
	ip, ns     string
	port       string // of the bridge, where its link ends
	dir        string // the data directory
	disk       *disk
	group      *group
	dependency string // URL of the service that its application calls
	broken     atomic.Bool
	service    net.Listener
	key        *ecdsa.PrivateKey // of its certificate
}

func (h *host) build(s *stage, needs need) error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return err
	}
	if s.bridge != "" {
		if err := h.connect(s); err != nil {
			return err
		}
	}
	if err := h.serve(s); err != nil {
		return err
	}
	var err error
	if needs&needsDisk != 0 {
		if h.disk, err = newDisk(h.dir); err != nil {
			return err
		}
	}
	if needs&needsGroup != 0 {
		name := fmt.Sprintf("%s%d-%d-%d", groupPrefix, os.Getpid(), s.cluster.lane, h.index)
		if h.group, err = newGroup(name); err != nil {
			return err
		}
	}
	if s.ca != nil {
		err = s.ca.issue(h, longLived)
	}
	return err
}

func (h *host) leave() {
	if h.service != nil {
		_ = h.service.Close()
	}
	if h.disk != nil {
		h.disk.leave()
	}
	if h.group != nil {
		h.group.remove()
	}
	if h.ns != "" { // it goes some time later, and its links would, too
		_ = run("ip", "link", "del", h.port)
		_ = run("ip", "netns", "del", h.ns)
	}
}

func (h *host) tlsDir() string { return h.dir + "-tls" }

// serve is the service that the host's application calls, on another machine.
func (h *host) serve(s *stage) (err error) {
	if h.service, err = net.Listen("tcp", s.address(254)+":0"); err != nil {
		return err
	}
	h.dependency = "http://" + h.service.Addr().String()
	go func() {
		_ = http.Serve(h.service, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			if h.broken.Load() {
				http.Error(out, "broken on purpose", http.StatusServiceUnavailable)
			}
		}))
	}()
	return nil
}

// address is one in the network of a stage, or of loopback.
func (s *stage) address(last int) string {
	if s.bridge == "" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("10.77.%d.%d", s.cluster.lane, last)
}

// network makes the bridge that the hosts are connected by, in the namespace of this process.
func (s *stage) network() error {
	s.bridge = fmt.Sprintf("gray%d", s.cluster.lane)
	if err := run("ip", "link", "add", s.bridge, "type", "bridge"); err != nil {
		return err
	}
	if err := run("ip", "addr", "add", s.address(254)+"/24", "dev", s.bridge); err != nil {
		return err
	}
	return run("ip", "link", "set", s.bridge, "up")
}

// connect makes the host's namespace, and its link to the bridge.
func (h *host) connect(s *stage) error {
	name := fmt.Sprintf("%d-%d", s.cluster.lane, h.index+1)
	h.ip, h.port = s.address(h.index+1), "port"+name
	if err := run("ip", "netns", "add", "gray"+name); err != nil {
		return err
	}
	h.ns = "gray" + name
	for _, command := range []string{
		"link add name " + h.port + " type veth peer name eth0 netns " + h.ns,
		"link set " + h.port + " master " + s.bridge + " up",
		"-n " + h.ns + " addr add " + h.ip + "/24 dev eth0",
		"-n " + h.ns + " link set eth0 up",
		"-n " + h.ns + " link set lo up",
	} {
		if err := run("ip", strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

// plug sets the host's link up or down.
func (h *host) plug(state string) error { return run("ip", "link", "set", h.port, state) }

// drop drops packets that arrive from others, those that match.
func (h *host) drop(others []*host, match ...string) (end func(), err error) {
	for _, o := range others {
		rule := append(strings.Fields("-w -A INPUT -j DROP -s "+o.ip), match...)
		if err := inside(h.ns, "iptables", rule...); err != nil {
			return nil, err
		}
	}
	return func() { _ = inside(h.ns, "iptables", "-w", "-F") }, nil
}

// inside runs a command in a network namespace.
func inside(ns, name string, args ...string) error {
	return run("nsenter", append([]string{"--net=/run/netns/" + ns, name}, args...)...)
}

// run runs a command that says something only when it fails.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return nil
}
