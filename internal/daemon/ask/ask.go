// Package ask has the commands of bmqnode that need no node of their own: they ask the nodes of a
// running cluster and tell them what to do. It finds all nodes through any one of them. doctor
// examines what they say: each problem has a kind, the reason why it matters, a fix, and an entry
// in docs/errors.md.
package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

const (
	askTimeout = 3 * time.Second
	// headStart is the time that each default address has before the next one is asked too. They may
	// be of several clusters; the first one is meant.
	headStart = 200 * time.Millisecond
	// The environment variables for the token file and the directory of the certificate.
	tokenVariable = "BMQNODE_TOKEN_FILE"
	tlsVariable   = "BMQNODE_TLS_DIR"
	// linkUp is MemberStatus.Link of a link that works.
	linkUp = "up"
)

// DefaultAddrs are the default address of a node, which is also that of the first node of a local
// mesh, and those of the next two nodes of such a mesh.
var DefaultAddrs = []string{config.DefaultAdminAddr, "127.0.0.1:7405", "127.0.0.1:7408"}

// Cluster is how to reach running nodes.
type Cluster struct {
	// Addrs are the admin addresses of any nodes.
	Addrs []string
	// JSON asks for the output that openapi.yaml describes.
	JSON bool

	admin             *pflag.Flag // the flag of Addrs; nil if no flags were registered
	tokenFile, tlsDir string
	credentials       admin.Credentials
	figures           bool              // ask for metrics too
	selection         cluster.Selection // the elections that nodes are to list
}

// of lets nodes list one election alone, until the function that it returns is called.
func (c *Cluster) of(group string) (restore func()) {
	before := c.selection
	c.selection = cluster.Selection{Group: group}
	return func() { c.selection = before }
}

// Register adds the flags.
func (c *Cluster) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&c.Addrs, "admin", DefaultAddrs, "admin addresses, host:port or "+
		"unix:PATH, of any nodes; the others are found through them (default "+
		strings.Join(DefaultAddrs, ", ")+")")
	c.admin = f.Lookup("admin")
	c.admin.DefValue = "[]" // a list of defaults is one word, too long for a line
	f.StringVar(&c.tlsDir, config.TLSFlag, "", "directory of ca.crt, and of tls.crt and tls.key of "+
		"an operator (default: $"+tlsVariable+")")
	f.StringVar(&c.tokenFile, config.TokenFlag, "",
		"file with a token of the nodes (default: $"+tokenVariable+")")
	f.BoolVar(&c.JSON, "json", false, "print JSON, as /v1/openapi.yaml describes it")
}

// Answer is what a node said, or why it said nothing.
type Answer struct {
	Node   cluster.NodeID  `json:"node"`
	Addr   string          `json:"admin_addr,omitempty"`
	Status *cluster.Status `json:"status,omitempty"` // nil: it did not answer
	Faults string          `json:"faults,omitempty"` // in words, after a change of them
	// Election is the node's part in an election that was opened or closed there.
	Election *cluster.GroupStatus `json:"election,omitempty"`
	Error    string               `json:"error,omitempty"`

	via     string        // the address at which it is asked, which may be a socket; "": none
	given   bool          // the user gave that address; no node named it
	figures admin.Figures // its metrics, if Cluster.figures; zero if it gave none
}

func (a Answer) answered() bool { return a.Status != nil }
func (a Answer) silent() bool   { return a.Status == nil }

func (a Answer) election() cluster.GroupStatus { return a.Status.Groups[0] }

// member is how the node sees another member; the zero value if it knows no such member.
func (a Answer) member(id cluster.NodeID) cluster.MemberStatus {
	return admin.MemberIn(*a.Status, id)
}

func (a Answer) hasLink(id cluster.NodeID) bool { return a.member(id).Link == linkUp }

func answering(answers []Answer) []Answer {
	return slices.DeleteFunc(slices.Clone(answers), Answer.silent)
}

func byName(a, b Answer) int { return cmp.Compare(a.Node, b.Node) }

// find returns the answer of a node; nil if there is none.
func find(among []Answer, id cluster.NodeID) *Answer {
	if i := slices.IndexFunc(among, func(a Answer) bool { return a.Node == id }); i >= 0 {
		return &among[i]
	}
	return nil
}

func nodesOf(answers []Answer) (ids []cluster.NodeID) {
	for _, a := range answers {
		ids = append(ids, a.Node)
	}
	return ids
}

// walk asks the given addresses and, as soon as an answer names them, the other members, all at the
// same time: a node that is dead or frozen delays nothing. It passes each answer to heard, one at a
// time, until heard has enough or all have answered. Questions that are left then are canceled. Of
// the default addresses only the first one that answers counts, unless all are wanted.
func (c *Cluster) walk(ctx context.Context, all bool, heard func(Answer) (enough bool)) error {
	if err := c.prepare(); err != nil {
		return config.Usage(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	all = all || !slices.Equal(c.Addrs, DefaultAddrs)
	answers, over := make(chan Answer), make(chan struct{})
	asked, pending := map[cluster.NodeID]bool{}, 0
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	defer cancel()
	ask := func(ctx context.Context, a Answer, after time.Duration) {
		pending++
		wg.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(after):
			}
			c.ask(ctx, &a)
			select {
			case answers <- a:
			case <-over:
			}
		})
	}
	given, found := context.WithCancel(ctx)
	defer found()
	for i, addr := range c.Addrs {
		if all {
			i = 0
		}
		ask(given, Answer{via: addr, given: true}, time.Duration(i)*headStart)
	}
	for met := false; pending > 0; pending-- {
		a := <-answers
		if a.given && met && !all {
			continue // another default address
		}
		if a.answered() {
			met, asked[a.Node] = true, true
			if !all {
				found()
			}
			for _, m := range membersOf(*a.Status) {
				if !asked[m.Node] {
					asked[m.Node] = true
					ask(ctx, m, 0)
				}
			}
		}
		if heard(a) {
			return nil
		}
	}
	return nil
}

// prepare reads the files of credentials. The error is the user's mistake.
func (c *Cluster) prepare() (err error) {
	var wrong []error
	for _, addr := range c.Addrs {
		wrong = append(wrong, admin.CheckAddr(addr))
	}
	c.credentials, err = admin.ReadCredentials(cmp.Or(c.tlsDir, os.Getenv(tlsVariable)),
		cmp.Or(c.tokenFile, os.Getenv(tokenVariable)))
	return errors.Join(append(wrong, err)...)
}

func (c *Cluster) ask(ctx context.Context, a *Answer) {
	if a.via == "" {
		return // and Error says why
	}
	bounded, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := c.client(*a)
	st, err := client.StatusOf(bounded, c.selection)
	switch {
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		a.Error = fmt.Sprintf("%s: does not answer within %s", a.via, askTimeout)
		return
	case err != nil:
		a.Error = err.Error()
		return
	case a.Node != "" && a.Node != st.Node:
		a.Error = fmt.Sprintf("%s: node %s answers there", a.via, st.Node)
		return
	}
	a.Node, a.Addr, a.Status, a.Error = st.Node, st.AdminAddr, &st, ""
	if c.figures {
		a.figures, _ = client.Figures(bounded) // an old node without metrics is fine
	}
}

// client returns a client for a node, whose name is "" before it has answered.
func (c *Cluster) client(a Answer) *admin.Client {
	return c.credentials.Client(a.via, a.Node, c.isNamed(a.via))
}

// isNamed reports whether the user named an address. Of the default addresses only that of a node
// counts: on the others, any user of this machine may listen.
func (c *Cluster) isNamed(addr string) bool {
	byDefault := c.admin != nil && !c.admin.Changed && slices.Equal(c.Addrs, DefaultAddrs)
	return slices.Contains(c.Addrs, addr) && (!byDefault || addr == config.DefaultAdminAddr)
}

// membersOf returns the other members that a node knows, each with its address or why it cannot
// be asked.
func membersOf(st cluster.Status) (all []Answer) {
	for _, m := range st.Members {
		a := Answer{Node: m.Node, Addr: admin.AddrOf(m), via: admin.AddrOf(m)}
		switch {
		case a.via != "":
		case m.GossipAddr == "":
			a.Error = "never seen"
		default:
			a.Error = "it has no admin address: ask it at its socket, with " +
				"--admin unix:PATH on its machine"
		}
		all = append(all, a)
	}
	return all
}

// All returns the answers of all nodes, the first to answer first. It leaves out the second answer
// of one process, and silence at an address if that node answered at another one.
func (c *Cluster) All(ctx context.Context) (all []Answer, err error) {
	var silent []Answer
	err = c.walk(ctx, false, func(a Answer) bool {
		same := func(b Answer) bool {
			return b.Node == a.Node &&
				(a.silent() || b.silent() || b.Status.Identity == a.Status.Identity)
		}
		switch i := slices.IndexFunc(all, same); {
		case a.given && a.silent():
			silent = append(silent, a)
		case i < 0:
			all = append(all, a)
		case a.answered() && a.given:
			all[i] = a // secrets may go to an address that was given
		}
		return false
	})
	if err == nil && len(all) == 0 {
		err = noAnswerOf(silent)
	}
	return all, err
}

// noAnswerOf is the error if no address answers.
func noAnswerOf(silent []Answer) error {
	if len(silent) == 0 {
		return errors.New("no node runs that could be asked")
	}
	text := "no node answers; name one that runs with --admin:"
	for _, a := range silent {
		text += "\n" + a.Error
	}
	return errors.New(text)
}

// namesOffered is the most names of elections that a prompt offers.
const namesOffered = 100

// Names returns the names of nodes, and of elections that begin so, that the first node to answer
// knows.
func (c *Cluster) Names(ctx context.Context, begun string) (nodes, groups []string, err error) {
	c.selection = cluster.Selection{Prefix: begun, Limit: namesOffered}
	err = c.walk(ctx, false, func(a Answer) bool {
		if a.silent() {
			return false
		}
		nodes = append(nodes, string(a.Node))
		for _, m := range a.Status.Members {
			nodes = append(nodes, string(m.Node))
		}
		for _, g := range a.Status.Groups {
			groups = append(groups, g.Group)
		}
		return true
	})
	slices.Sort(nodes)
	return nodes, groups, err
}
