package tidy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ban says what the code of one part of the tree must not import, itself or
// through other packages of this module. A name stands for all below it.
type ban struct {
	from  string   // a folder of this module; "" for all of it
	reach []string // import paths
	why   string
	// direct looks at the part's own imports only: elector is pure although it
	// uses lsn, whose Sequencer is for others and needs sync.
	direct bool
	// except are folders, with spaces between them, whose packages the ban does not bind;
	// whoever imports them is bound.
	except string
}

var (
	testLibraries = []string{
		"testing", "github.com/stretchr/testify", "pgregory.net/rapid", "go.uber.org/goleak",
		"github.com/cockroachdb/datadriven", "github.com/chromedp/chromedp",
		"github.com/getkin/kin-openapi", module + "/internal/testkit",
	}
	world = []string{"math/rand", "crypto/rand", "os", "net", "log", "syscall", "sync", "context",
		"io", "unsafe"}
)

// floors are the house from top to bottom. A package imports what is on its own floor or
// below; of two folders that hold a package, the longer is its floor.
var floors = []string{
	"internal/tidy", "examples", "tests", "internal/peers", "cmd", "internal/lab",
	"internal/testkit/nodes", "internal/daemon",
	"cluster/clustertest",
	"cluster/recovery", "cluster", "cluster/internal/loop",
	"cluster/internal", "cluster/findings", "netmesh", "elector",
	"elector/detector", "scouting", "lsn", "internal/memnet", "internal/base", "internal/testkit",
}

var bans = []ban{
	{"scouting", world,
		"the core is pure: entropy and effects come and go as data, one goroutine owns it", true, ""},
	{"elector", world, "the core is pure: entropy and effects come and go as data, one goroutine owns it", true, ""},
	{"cluster/internal/leadership", world,
		"the core is pure: entropy and effects come and go as data, one goroutine owns it", true, ""},
	{"cluster/internal/loop", []string{"os", "net", module + "/cluster/internal/gossip"},
		"the driver waits for nobody: it has no network and no files of its own", true, ""},
	{"cluster", []string{"github.com/prometheus"},
		"whoever embeds a node chooses the metrics library: Stats has the figures", false, ""},
	{"cluster", []string{"github.com/spf13"}, "whoever embeds a node embeds no command line", false,
		""},
	{"internal/lab/verdict", []string{module + "/internal/lab/report"}, "what judges does not draw",
		false, ""},
	{"internal/lab/replay", []string{module + "/internal/lab/report"}, "what plays does not draw",
		false, ""},
	{"internal/lab/compare", []string{module + "/internal/lab/report"}, "what measures does not draw",
		false, ""},
	{"internal/lab/replay", []string{module + "/internal/daemon"}, "a simulation starts no process",
		false, "internal/lab/replay/live"},
	{"internal/lab/sim", []string{module + "/netmesh", module + "/cluster", "net", "os"},
		"the simulator is the core on a virtual network: nothing real in it", false, ""},
	{"internal/daemon/exec/supervisor", []string{module + "/elector", module + "/netmesh", module +
		"/cluster"}, "the supervisor knows processes and deadlines: it does not import what it must survive", false, ""},
	{"", testLibraries, "users' binaries must not carry test code", false,
		"cluster/clustertest internal/testkit"},
}

// coreOnly are the packages that import the standard library and each other.
var coreOnly = []string{"lsn", "scouting", "elector"}

func TestImportsRunOneWay(t *testing.T) {
	files := goFiles(t, repository())
	require.Empty(t, upwardImports(files))
	require.Empty(t, bannedImports(files))
	require.Empty(t, foreignImports(files))
}

// upwardImports returns a line for each import of a higher floor, and for each package
// that is on none.
func upwardImports(files []goFile) (broken []string) {
	for from, imports := range importGraph(files) {
		low := floorOf(from)
		if low < 0 {
			broken = append(broken, from+" is on no floor: add its folder to floors")
		}
		for _, to := range imports {
			if high := floorOf(to); high >= 0 && high < low {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s is below %s",
					from, to, floors[low], floors[high]))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// floorOf is the index of a package's floor; -1 if it has none.
func floorOf(pkg string) int {
	floor := -1
	for i, folder := range floors {
		if within(pkg, module+"/"+folder) && (floor < 0 || len(folder) > len(floors[floor])) {
			floor = i
		}
	}
	return floor
}

// bannedImports returns a line for each ban that is broken.
func bannedImports(files []goFile) (broken []string) {
	g := importGraph(files)
	for _, b := range bans {
		for _, from := range slices.Sorted(maps.Keys(g)) {
			if b.binds(from) {
				broken = append(broken, g.check(from, b)...)
			}
		}
	}
	return broken
}

func (b ban) binds(pkg string) bool {
	return within(pkg, module+"/"+b.from) && !slices.ContainsFunc(strings.Fields(b.except),
		func(folder string) bool { return within(pkg, module+"/"+folder) })
}

// foreignImports returns a line for each import of the core packages that is
// neither standard library nor core.
func foreignImports(files []goFile) (broken []string) {
	core := func(imported string) bool {
		return slices.ContainsFunc(coreOnly,
			func(c string) bool { return within(imported, module+"/"+c) })
	}
	for _, f := range files {
		if f.test || !core(module+"/"+f.dir()) {
			continue
		}
		for _, imported := range f.imports {
			if !core(imported) && !standard(imported) {
				broken = append(broken, fmt.Sprintf("%s imports %s: the core needs the standard library alone",
					f.path, imported))
			}
		}
	}
	return broken
}

// graph holds what each package of the module imports outside its tests.
type graph map[string][]string

func importGraph(files []goFile) graph {
	g := graph{}
	for _, f := range files {
		if !f.test {
			importer := module + "/" + f.dir()
			g[importer] = append(g[importer], f.imports...)
		}
	}
	return g
}

// check searches all that from reaches, and shows the path to what is banned.
func (g graph) check(from string, b ban) (broken []string) {
	seen := map[string]bool{from: true}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		for _, next := range g[way[len(way)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			on := append(slices.Clone(way), next)
			if slices.ContainsFunc(b.reach, func(r string) bool { return within(next, r) }) {
				broken = append(broken, fmt.Sprintf("%s: %s", strings.Join(on, " -> "), b.why))
			}
			if !b.direct {
				queue = append(queue, on)
			}
		}
	}
	return broken
}

// within reports whether p is folder or below it.
func within(p, folder string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return p == folder || strings.HasPrefix(p, folder+"/")
}

// standard reports whether an import is of the standard library: its first
// element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func TestBansAreNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"not allowed": {
			map[string]string{"cluster/a.go": "package cluster; import _ \"github.com/spf13/cobra\""},
			"cluster -> github.com/spf13/cobra: whoever embeds a node embeds no command line",
		},
		"through another": {
			map[string]string{
				"cluster/a.go":            "package cluster; import _ \"" + module + "/cluster/internal/x\"",
				"cluster/internal/x/x.go": "package x; import _ \"github.com/prometheus/client_golang\"",
			},
			"cluster -> " + module + "/cluster/internal/x -> github.com/prometheus/client_golang: ",
		},
		"on another system": {
			map[string]string{"elector/a_plan9.go": "package elector; import _ \"math/rand/v2\""},
			"elector -> math/rand/v2: the core is pure",
		},
		"test library": {
			map[string]string{"cluster/a.go": "package cluster; import _ \"github.com/stretchr/testify/require\""},
			"cluster -> github.com/stretchr/testify/require: users' binaries",
		},
	} {
		got := bannedImports(goFiles(t, tree(c.files)))
		require.NotEmpty(t, got, name)
		require.Contains(t, strings.Join(got, "\n"), c.want, name)
	}
}

func TestUpwardImportsAreNoticed(t *testing.T) {
	imports := func(path string) string {
		return "package a; import _ \"" + module + "/" + path +
			"\""
	}
	require.Empty(t, upwardImports(goFiles(t, tree(map[string]string{
		"cluster/a.go":        imports("cluster/internal/x"),
		"internal/lab/a/a.go": imports("internal/daemon/b"),
		"cluster/a_test.go":   imports("cluster/clustertest"),
	}))))
	for from, to := range map[string]string{
		"netmesh": "cluster", "cluster/internal/x": "cluster", "cluster": "cluster/clustertest",
		"internal/base/x": "lsn", "internal/daemon/a": "internal/lab/b", "elector": "netmesh/fault",
		"elector/detector": "elector",
	} {
		got := upwardImports(goFiles(t, tree(map[string]string{from + "/a.go": imports(to)})))
		require.Len(t, got, 1, from)
		require.Contains(t, got[0], from+" imports "+module+"/"+to)
	}
	got := upwardImports(goFiles(t, tree(map[string]string{"internal/attic/a.go": "package a"})))
	require.Equal(t, []string{module + "/internal/attic is on no floor: add its folder to floors"},
		got)
}

func TestForeignImportsAreNoticed(t *testing.T) {
	source := "package lsn; import (_ \"cmp\"; _ \"github.com/hashicorp/go-hclog\"; _ \"" + module +
		"/netmesh\")"
	got := foreignImports(goFiles(t, tree(map[string]string{
		"lsn/a.go": source, "lsn/a_test.go": source, "netmesh/a.go": source,
	})))
	require.Len(t, got, 2)
	require.Contains(t, got[0], "lsn/a.go imports github.com/hashicorp/go-hclog")
	require.Contains(t, got[1], "lsn/a.go imports "+module+"/netmesh")
}

func TestDirectBansStopThere(t *testing.T) {
	require.Empty(t, bannedImports(goFiles(t, tree(map[string]string{
		"elector/a.go": "package elector; import _ \"" + module + "/lsn\"",
		"lsn/a.go":     "package lsn; import _ \"sync\"",
	}))))
}

func TestExceptionIsForThePackageAlone(t *testing.T) {
	got := bannedImports(goFiles(t, tree(map[string]string{
		"cluster/clustertest/a.go": "package clustertest; import _ \"testing\"",
		"internal/lab/replay/a.go": "package replay; import _ \"" + module + "/cluster/clustertest\"",
	})))
	require.Len(t, got, 1)
	require.Contains(t, got[0],
		"internal/lab/replay -> "+module+"/cluster/clustertest -> testing: users' binaries")
}

func TestTestsMayImportMore(t *testing.T) {
	require.Empty(t, bannedImports(goFiles(t, tree(map[string]string{
		"lsn/a_test.go": "package lsn; import _ \"testing\"; import _ \"" + module + "/cmd/bmqnode\"",
	}))))
}
