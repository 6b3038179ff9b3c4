package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// These packages run for years beside peers, disks and callbacks that may hang,
// and are told names by strangers: what waits in them has a bound, and what
// grows in them shrinks again.
var bounded = []string{"cluster", "netmesh", "internal/daemon/admin", "internal/daemon/metrics",
	"internal/daemon/exec", "internal/base/clock"}

// waits are the waits without a select or a context, and what bounds each.
var waits = map[string]string{
	"cluster Run: news.Wait()": "the caller's OnNewLeader: Run returns after its callbacks, as it says",
	"cluster Start: <-started": "a goroutine that undoes a start whose caller has gone",
	`cluster reportLeaders: <-runCallback("OnNewLeader", (func() error literal))`: "the caller's callback",
	`cluster work: <-runCallback("OnStoppedLeading", (func() error literal))`:     "the caller's callback",
	"cluster stop: <-n.loop.Persisted()":                                          "Close's own goroutine: the disk",
	"cluster stop: <-n.recorder.Done()":                                           "likewise: the disk",
	"cluster stop: <-n.gossip.Saved()":                                            "likewise: the disk",
	"cluster releaseDir: <-over":                                                  "the work's deadline",
	"cluster/internal/loop Stop: <-l.ended":                                       "Close's own goroutine; its caller waits no longer than its ctx",
	"cluster/internal/loop view: <-l.ended":                                       "the driver has been told to end; a view takes no ctx",
	"cluster/internal/loop WorkOver: <-work":                                      "the deadline of the work, of which nobody waits for more",
	"cluster/internal/guarded Stop: <-w.ended":                                    "the watcher ends when it is told to, and waits for nobody",
	"cluster/internal/recorder writeWaiting: <-r.records":                         "takes what is there, and never waits",
	"cluster/internal/gossip Shutdown: t.wg.Wait()":                               "its connections are closed, and greetings have a deadline",
	"cluster/internal/gossip ping: pings.Wait()":                                  "memberlist's time-out of each ping",
	"cluster/internal/gossip shutDown: g.wg.Wait()":                               "its own goroutine; the caller of Close waits for its ctx",
	"cluster/internal/gossip round: <-slots":                                      "takes back its own place, and never waits",
	"cluster/internal/gossip round: wg.Wait()":                                    "memberlist's time-out of each dial",
	"internal/daemon/admin Close: s.running.Wait()":                               "the listeners are closed, and the journal's subscription",
	"internal/daemon/exec runOnce: <-x.signals":                                   "takes what is there, and never waits",
	"internal/daemon/exec/supervisor Result: <-c.done":                            "the deadline of the command, or the end that its owner asks for",
	"internal/daemon/exec/supervisor run: c.cmd.Wait()":                           "the supervisor has closed its socket: it ends, or was killed",
	"netmesh connect: <-ctx.Done()":                                               "the time-out of a dial",
	"netmesh unlock: <-c":                                                         "takes back what it put there, and never waits",
	"netmesh/fault CloseWrite: <-c.written":                                       "the write deadline of the goodbye; flushTime for late frames",
	"netmesh run: <-l.written":                                                    "the write deadline of the goodbye, which end has set",
	"netmesh shutdown: m.links.Wait()":                                            "Close's own goroutine; its caller waits no longer than its ctx",
	"netmesh shutdown: m.others.Wait()":                                           "likewise",
	"netmesh write: <-l.stop":                                                     "the read deadline that failed has set: then the reader ends the link",
}

// tables are the maps that only grow, and what bounds each.
var tables = map[string]string{
	"cluster AnomalyAges":             "a snapshot; its keys are the kinds of anomalies",
	"cluster Phases":                  "a snapshot; its keys are the phases of an election",
	"cluster Anomalies":               "a snapshot; its keys are the kinds of anomalies",
	"cluster/internal/loop closed":    "forgetReleased takes those whose work has been released",
	"cluster/internal/loop anomalies": "the kinds of anomalies",
	"cluster/internal/loop processes": "the voters",
	"cluster/internal/loop silences":  "the voters",
	"netmesh identities":              "maxNames names of voters, maxIdentities of each",
	"cluster/internal/gossip failed":  "the join addresses of the configuration",
}

// A wait that nothing bounds is how a hanging disk or peer hangs Close.
func TestEveryWaitHasABound(t *testing.T) {
	requireListed(t, unboundedWaits(libraryFiles(goFiles(t, repository()))), waits)
}

// A table that only grows is how a stranger, or a year, fills the memory.
func TestEveryTableHasABound(t *testing.T) {
	requireListed(t, growingTables(libraryFiles(goFiles(t, repository()))), tables)
}

// requireListed demands that what was found is what is listed with a reason.
func requireListed(t *testing.T, found []string, listed map[string]string) {
	t.Helper()
	unlisted := slices.DeleteFunc(slices.Clone(found), func(f string) bool { return listed[f] != "" })
	require.Empty(t, unlisted, "bound these, or list them with what bounds them")
	for _, l := range slices.Sorted(maps.Keys(listed)) {
		require.Contains(t, found, l, "listed, and not in the code any more")
	}
}

func libraryFiles(files []goFile) []goFile {
	return slices.DeleteFunc(files, func(f goFile) bool {
		in := func(pkg string) bool { return within(f.dir(), pkg) }
		return f.test || !slices.ContainsFunc(bounded, in) || in("cluster/clustertest") ||
			in("cluster/internal/testprocess")
	})
}

// unboundedWaits returns every receive outside a select, and every Wait(), as
// "folder function: wait".
func unboundedWaits(files []goFile) (found []string) {
	for _, f := range files {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, wait := range waitsIn(fn) {
				found = append(found, fmt.Sprintf("%s %s: %s", f.dir(), fn.Name.Name, wait))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func waitsIn(fn *ast.FuncDecl) (found []string) {
	chosen := map[ast.Node]bool{} // receives that are one choice of several
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			for _, clause := range n.Body.List {
				if receive := receiveOf(clause.(*ast.CommClause).Comm); receive != nil {
					chosen[receive] = len(n.Body.List) > 1
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !chosen[n] {
				found = append(found, types.ExprString(n))
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Wait" && len(n.Args) == 0 {
				found = append(found, types.ExprString(n))
			}
		}
		return true
	})
	return found
}

// receiveOf returns the receive of a select's case; nil if it sends, or is the
// default.
func receiveOf(comm ast.Stmt) ast.Node {
	switch s := comm.(type) {
	case *ast.ExprStmt:
		return ast.Unparen(s.X)
	case *ast.AssignStmt:
		return ast.Unparen(s.Rhs[0])
	}
	return nil
}

// growingTables returns the fields of structs that are maps to which the package
// adds, and from which it never takes, as "folder field".
func growingTables(files []goFile) (found []string) {
	packages := map[string][]goFile{}
	for _, f := range files {
		packages[f.dir()] = append(packages[f.dir()], f)
	}
	for dir, files := range packages {
		grows, shrinks := map[string]bool{}, map[string]bool{}
		for _, f := range files {
			ast.Inspect(f.syntax, func(n ast.Node) bool { growth(n, grows, shrinks); return true })
		}
		for _, f := range files {
			for _, field := range mapFields(f) {
				if grows[field] && !shrinks[field] {
					found = append(found, dir+" "+field)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func mapFields(f goFile) (names []string) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range s.Fields.List {
			if _, ok := field.Type.(*ast.MapType); !ok {
				continue
			}
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		return true
	})
	return names
}

// growth notes by the name of the field what a node of the syntax does to a map:
// x.field[key] = v adds, and so does x.field[key]++; delete, clear and a new value
// that is not made on the spot take.
func growth(n ast.Node, grows, shrinks map[string]bool) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, lhs := range n.Lhs {
			if index, ok := lhs.(*ast.IndexExpr); ok {
				grows[fieldOf(index.X)] = true
			} else if len(n.Rhs) == len(n.Lhs) {
				_, literal := n.Rhs[i].(*ast.CompositeLit)
				shrinks[fieldOf(lhs)] = shrinks[fieldOf(lhs)] || !literal
			}
		}
	case *ast.IncDecStmt:
		if index, ok := n.X.(*ast.IndexExpr); ok {
			grows[fieldOf(index.X)] = true
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && (name.Name == "delete" || name.Name == "clear") {
			shrinks[fieldOf(n.Args[0])] = true
		}
	}
}

// fieldOf is the last name of x.field; "" if the expression is none.
func fieldOf(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return ""
}

func TestBoundsAreDemanded(t *testing.T) {
	files := goFiles(t, tree(map[string]string{"cluster/a.go": `package a
type table struct { grows, shrinks, cleared, filled map[string]int }
func (t *table) f(c, d chan int) {
	t.grows["a"] = 1; t.shrinks["a"]++; t.cleared["a"] = 1
	delete(t.shrinks, "a"); clear(t.cleared)
	t.filled = map[string]int{}
	select { case <-c: case v := <-d: _ = v }
	select { case <-c: default: }
	select { case <-c: }
	_ = <-d
	group.Wait()
}`}))
	require.Equal(t, []string{"cluster f: <-c", "cluster f: <-d", "cluster f: group.Wait()"},
		unboundedWaits(files))
	require.Equal(t, []string{"cluster grows"}, growingTables(files))
}
