package tidy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A ban names what the code of one part of the tree must not import, neither directly nor
// through other packages of this module. A path stands for all packages below it, too.
type ban struct {
	from  string   // a folder of this module; "" for all of it
	reach []string // import paths
	why   string
	// direct limits the ban to direct imports: elector is pure although it imports lsn,
	// whose Sequencer needs sync.
	direct bool
	// except are folders, separated by spaces, whose own imports are free. A package that
	// imports one of them is bound.
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
	"internal/tidy", "examples", "integrations", "tests", "internal/peers", "cmd", "internal/lab",
	"internal/testkit/nodes", "internal/daemon",
	"cluster/clustertest",
	"cluster/recovery", "cluster", "cluster/internal/loop",
	"cluster/internal", "cluster/findings", "cluster/health", "netmesh", "elector",
	"elector/detector", "scouting", "lsn", "internal/memnet", "internal/base", "internal/testkit",
}

const pure = "the core is pure: entropy and effects come and go as data, one goroutine owns it"

// drawing is what the packages that play, measure and judge do not import.
var drawing = []string{module + "/internal/lab/report"}

var bans = []ban{
	{from: "scouting", reach: world, direct: true, why: pure},
	{from: "elector", reach: world, direct: true, why: pure},
	{from: "cluster/internal/leadership", reach: world, direct: true, why: pure},
	{from: "cluster/internal/loop", reach: []string{"os", "net", module + "/cluster/internal/gossip"},
		direct: true, why: "the driver waits for nobody: it has no network and no files of its own"},
	{from: "cluster", reach: []string{"github.com/prometheus"},
		why: "whoever embeds a node chooses the metrics library: Stats has the figures"},
	{from: "cluster", reach: []string{"github.com/spf13"},
		why: "whoever embeds a node embeds no command line"},
	{from: "internal/lab/verdict", reach: drawing, why: "what judges does not draw"},
	{from: "internal/lab/replay", reach: drawing, why: "what plays does not draw"},
	{from: "internal/lab/replay", reach: []string{module + "/internal/daemon"},
		why: "a simulation starts no process", except: "internal/lab/replay/live"},
	{from: "internal/lab/sim", reach: []string{module + "/netmesh", module + "/cluster", "net", "os"},
		why: "the simulator is the core on a virtual network: nothing real in it"},
	{from: "internal/daemon/exec/supervisor",
		reach: []string{module + "/elector", module + "/netmesh", module + "/cluster"},
		why:   "the supervisor knows processes and deadlines: it does not import what it must survive"},
	{from: "", reach: testLibraries, why: "users' binaries must not carry test code",
		except: "cluster/clustertest internal/testkit"},
}

// coreOnly are the packages that import the standard library and each other.
var coreOnly = []string{"lsn", "scouting", "elector"}

// upwardImports returns a line for each import of a higher floor, and for each package
// that is on none.
func upwardImports(r repo) (broken []string) {
	for from, imports := range importGraph(r.gos) {
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
	return short(broken)
}

// short returns lines in which packages of the module are named without the module path.
func short(lines []string) (shorter []string) {
	for _, line := range lines {
		shorter = append(shorter, strings.ReplaceAll(line, module+"/", ""))
	}
	return shorter
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
func bannedImports(r repo) (broken []string) {
	g := importGraph(r.gos)
	for _, b := range bans {
		for _, from := range slices.Sorted(maps.Keys(g)) {
			if b.binds(from) {
				broken = append(broken, g.check(from, b)...)
			}
		}
	}
	return short(broken)
}

func (b ban) binds(pkg string) bool {
	return within(pkg, module+"/"+b.from) && !slices.ContainsFunc(strings.Fields(b.except),
		func(folder string) bool { return within(pkg, module+"/"+folder) })
}

// foreignImports returns a line for each import of the core packages that is
// neither standard library nor core.
func foreignImports(r repo) (broken []string) {
	core := func(imported string) bool {
		return slices.ContainsFunc(coreOnly,
			func(c string) bool { return within(imported, module+"/"+c) })
	}
	for _, f := range r.gos {
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
	return short(broken)
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

// check searches all packages that from imports, and shows the path to each that is banned.
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
