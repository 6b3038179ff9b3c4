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

// bounded are the packages that run for years beside peers, disks and callbacks that may hang,
// and to which strangers send names. Every wait in them has a bound, and whatever grows in them
// shrinks again.
var bounded = []string{"cluster", "netmesh", "internal/daemon/admin", "internal/daemon/metrics",
	"internal/daemon/exec", "internal/base/clock"}

// waits are the waits without a select or a context, and what bounds each.
var waits = map[string]string{
	"cluster changeVoters: all.Wait()": "each ends with the context of the caller",
	"cluster Run: news.Wait()":         "the caller's OnNewLeader: Run returns after its callbacks, as it says",
	"cluster runAgain: <-ended":        "likewise: RunFunc tells its end when ctx has ended and the callbacks returned",
	"cluster/shards load: <-r.starts":  "takes back its own place, and never waits",
	"cluster/shards Run: <-r.results":  "Work returns when it is told to, and transfers end: Run says so",
	"cluster giveBack: <-t":            "takes back what it put there, and never waits",
	"cluster stopped: <-done":          "the application: OnPrepare returns when its context ends",
	"cluster Start: <-started":         "a goroutine that undoes a start whose caller has gone",
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
	"cluster/health Watch: first.Wait()":                                          "each waits for its check, at most until its time-out",
	"cluster/health Close: m.running.Wait()":                                      "closeTime",
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
	"cluster Uninvited":               "a snapshot; its keys are in newUninvited",
	"cluster/shards byGroup":          "the shards",
	"cluster/shards shunned":          "the voters",
	"cluster AnomalyAges":             "a snapshot; its keys are the kinds of anomalies",
	"cluster Phases":                  "a snapshot; its keys are the phases of an election",
	"cluster Leaders":                 "a snapshot; its keys are voters",
	"cluster Roles":                   "a snapshot; its keys are roles",
	"cluster Anomalies":               "a snapshot; its keys are the kinds of anomalies",
	"cluster/internal/loop closed":    "forgetReleased takes those whose work has been released",
	"cluster/internal/loop shut":      "closeIdle takes those that were closed for shutTime",
	"cluster/internal/loop anomalies": "the kinds of anomalies",
	"cluster/internal/loop processes": "the voters",
	"cluster/internal/loop silences":  "the voters",
	"netmesh identities":              "maxNames names of voters, maxIdentities of each",
	"cluster/internal/gossip failed":  "the join addresses of the configuration",
}

// A wait that nothing bounds lets a disk or a peer that hangs hang Close, too. A table that
// only grows lets a stranger, or a year, fill the memory.
func TestEveryWaitAndTableHasABound(t *testing.T) {
	files := libraryFiles(read(t, repository()).gos)
	requireListed(t, unboundedWaits(files), waits)
	requireListed(t, growingTables(files), tables)
}

// requireListed demands that what was found is what is listed with a reason.
func requireListed(t *testing.T, found []string, listed map[string]string) {
	t.Helper()
	require.ElementsMatch(t, slices.Collect(maps.Keys(listed)), found,
		"bound what is found, or list it with what bounds it; list only what is in the code")
	require.NotContains(t, slices.Collect(maps.Values(listed)), "", "a reason")
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
		for _, fn := range f.functions() {
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
	for n := range ast.Preorder(fn) {
		switch n := n.(type) {
		case *ast.SelectStmt:
			for _, clause := range n.Body.List {
				receive := receiveOf(clause.(*ast.CommClause).Comm)
				chosen[receive] = len(n.Body.List) > 1
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
	}
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
	fields, grows, shrinks := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range files {
		for n := range ast.Preorder(f.syntax) {
			if s, ok := n.(*ast.StructType); ok {
				for _, name := range mapFields(s) {
					fields[f.dir()+" "+name] = true
				}
			}
			added, taken := changes(n)
			for _, name := range added {
				grows[f.dir()+" "+name] = true
			}
			for _, name := range taken {
				shrinks[f.dir()+" "+name] = true
			}
		}
	}
	maps.DeleteFunc(fields, func(field string, _ bool) bool { return !grows[field] || shrinks[field] })
	return slices.Sorted(maps.Keys(fields))
}

func mapFields(s *ast.StructType) (names []string) {
	for _, field := range s.Fields.List {
		if _, isMap := field.Type.(*ast.MapType); isMap {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// changes returns the names of the fields to whose maps a node of the syntax adds, and of
// those from which it takes. x.field[key] = v adds, and so does x.field[key]++; delete, clear
// and a new value that is not made on the spot take.
func changes(n ast.Node) (added, taken []string) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if index, ok := left.(*ast.IndexExpr); ok {
				added = append(added, fieldOf(index.X))
			} else if len(n.Rhs) == len(n.Lhs) {
				if _, literal := n.Rhs[i].(*ast.CompositeLit); !literal {
					taken = append(taken, fieldOf(left))
				}
			}
		}
	case *ast.IncDecStmt:
		if index, ok := n.X.(*ast.IndexExpr); ok {
			added = append(added, fieldOf(index.X))
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && (name.Name == "delete" || name.Name == "clear") {
			taken = append(taken, fieldOf(n.Args[0]))
		}
	}
	return added, taken
}

// fieldOf is the last name of x.field; "" if the expression is none.
func fieldOf(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return ""
}

func TestBoundsAreDemanded(t *testing.T) {
	files := read(t, tree(map[string]string{"cluster/a.go": `package a
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
}`})).gos
	require.Equal(t, []string{"cluster f: <-c", "cluster f: <-d", "cluster f: group.Wait()"},
		unboundedWaits(files))
	require.Equal(t, []string{"cluster grows"}, growingTables(files))
}
