package tidy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rule is something that the whole tree keeps.
type rule struct {
	broken  func(r repo) []string // a line for each place that breaks it
	example map[string]string     // a small tree that breaks it, by path ...
	want    []string              // ... and the lines for that tree
}

// Each example also holds what is close to a breach and allowed.
var rules = map[string]rule{
	"no file or function is too long": {tooLong, map[string]string{
		"a/a.go":      function(longestFunction),
		"a/a_test.go": function(longestFile + 1),
		"a/b.go":      function(longestFunction + 1),
		"a/c.go":      "package a\n" + strings.Repeat("\n", longestFile),
	}, []string{
		"a/b.go:3:1: f has 61 lines, limit 60",
		"a/c.go: 501 lines, limit 500",
	}},
	"every package has a comment": {unexplained, map[string]string{
		"a/a.go": "package a", "a/a_test.go": "// Package a is no help here.\npackage a",
		"b/b.go": "// Package c is another.\npackage b",
		"c/c.go": "package c", "c/doc.go": "// Package c is good.\npackage c",
		"d/d.go": "// Daemon of doom.\npackage main",
	}, []string{
		`a: no file has a package comment ("// Package name ...")`,
		`b: no file has a package comment ("// Package name ...")`,
	}},
	"the core has no goroutine and no clock": {impure, map[string]string{
		"elector/a.go": impureCode, "elector/a_test.go": impureCode, "netmesh/a.go": impureCode,
	}, []string{
		"elector/a.go:2:9: time.Now: the core is pure",
		"elector/a.go:3:12: go: the core is pure",
		"elector/a.go:4:12: go: the core is pure",
	}},
	"imports run downwards": {upwardImports, map[string]string{
		"cluster/a.go":            imports("cluster/internal/x", "cluster/clustertest"),
		"cluster/a_test.go":       imports("cluster/clustertest"),
		"cluster/internal/x/a.go": imports("cluster"),
		"elector/a.go":            imports("netmesh/fault"),
		"elector/detector/a.go":   imports("elector"),
		"internal/attic/a.go":     "package a",
		"internal/base/x/a.go":    imports("lsn"),
		"internal/daemon/a/a.go":  imports("internal/lab/b"),
		"internal/lab/a/a.go":     imports("internal/daemon/b"),
		"netmesh/a.go":            imports("cluster"),
	}, []string{
		"cluster imports cluster/clustertest: cluster is below cluster/clustertest",
		"cluster/internal/x imports cluster: cluster/internal is below cluster",
		"elector imports netmesh/fault: elector is below netmesh",
		"elector/detector imports elector: elector/detector is below elector",
		"internal/attic is on no floor: add its folder to floors",
		"internal/base/x imports lsn: internal/base is below lsn",
		"internal/daemon/a imports internal/lab/b: internal/daemon is below internal/lab",
		"netmesh imports cluster: netmesh is below cluster",
	}},
	"bans of imports are kept": {bannedImports, map[string]string{
		"cluster/a.go":             "package cluster; import _ \"github.com/spf13/cobra\"",
		"cluster/b.go":             imports("cluster/internal/x"),
		"cluster/internal/x/x.go":  "package x; import _ \"github.com/prometheus/client_golang\"",
		"cluster/clustertest/a.go": "package clustertest; import _ \"testing\"",
		"elector/a_plan9.go":       "package elector; import _ \"math/rand/v2\"",
		"elector/b.go":             imports("lsn"),
		"internal/lab/replay/a.go": imports("cluster/clustertest"),
		"lsn/a.go":                 "package lsn; import _ \"sync\"",
		"lsn/a_test.go":            "package lsn; import _ \"testing\"",
		"netmesh/a.go":             "package netmesh; import _ \"github.com/stretchr/testify/require\"",
	}, []string{
		"elector -> math/rand/v2: " + pure,
		"cluster -> cluster/internal/x -> github.com/prometheus/client_golang: " +
			"whoever embeds a node chooses the metrics library: Stats has the figures",
		"cluster/internal/x -> github.com/prometheus/client_golang: " +
			"whoever embeds a node chooses the metrics library: Stats has the figures",
		"cluster -> github.com/spf13/cobra: whoever embeds a node embeds no command line",
		"internal/lab/replay -> cluster/clustertest -> testing: users' binaries must not carry test code",
		"netmesh -> github.com/stretchr/testify/require: users' binaries must not carry test code",
	}},
	"the core imports the standard library and itself": {foreignImports, map[string]string{
		"lsn/a.go": foreign, "lsn/a_test.go": foreign, "netmesh/a.go": foreign,
	}, []string{
		"lsn/a.go imports github.com/hashicorp/go-hclog: the core needs the standard library alone",
		"lsn/a.go imports netmesh: the core needs the standard library alone",
	}},
	"text is clean": {stained, map[string]string{
		"a/a.go":    "package a // caf\u00e9 \u00a74.1",
		"a/b.go":    "package a // TO" + "DO: write it",
		"a/c.go":    "package a // see \"/ro" + "ot/x.y\"",
		"README.md": "caf\u00e9 http://host/wor" + "k/ ./ro" + "ot/",
		".git/x.md": "TO" + "DO",
		"a.png":     "TO" + "DO",
	}, []string{
		"a/a.go:1: not ASCII; write \\u escapes, but the section sign for a rule of the protocol: " +
			"package a // caf\u00e9 \u00a74.1",
		"a/b.go:1: unfinished; do it or leave it out: package a // TO" + "DO: write it",
		"a/c.go:1: a path of somebody's machine: package a // see \"/ro" + "ot/x.y\"",
	}},
	"lines are not too wide": {tooWide, map[string]string{
		"a.go": "package a\n// " + words + "\nvar a = \"" + words + "\"\n",
		"b.md": words + "\n| " + words + "|\nhttps://" + words + "\n    " + words + "\n",
	}, []string{"a.go:2: 108 characters, limit 100", "b.md:1: 105 characters, limit 100"}},
	"pages that are referred to exist": {missingPages, map[string]string{
		"README.md":      "[a](docs/a.md#x), https://host/of/others.md, [b](docs/b.md)",
		"docs/a.md":      "[up](../README.md) [out](../missing.md) a.md\n# 1.2 `X` y\n[x](#12-x-y)[y](#y)",
		"a/a.go":         "package a // see a.md and PROTO" + "COL.md\nvar s = \"docs/" + "c.md\"",
		"a/a_test.go":    "package a // see d.md\nvar s = \"made.md\"",
		".github/not.md": "e.md",
	}, []string{
		"README.md: docs/a.md#x is not there",
		"README.md: docs/b.md is not there",
		"docs/a.md: ../missing.md is not there",
		"docs/a.md: a.md#y is not there",
		"a/a.go: PROTO" + "COL.md is not there",
		"a/a.go: docs/c.md is not there",
		"a/a_test.go: d.md is not there",
	}},
	"tests that pages name exist": {missingTests, map[string]string{
		"docs/a.md":   "TestThis, TestThat, `FuzzIt`, Testing, aTestX, -run TestNo",
		"a/a_test.go": "package a\nfunc TestThis() {}\nfunc FuzzIt() {}",
		"a/a.go":      "package a\nfunc TestThat() {}",
	}, []string{"docs/a.md: there is no TestThat", "docs/a.md: there is no TestNo"}},
	"make targets exist and have help": {missingTargets, map[string]string{
		"Makefile": "X = 1\n.PHONY: test\ntest: ## run them\n\tgo test\nbare: test\n",
		"README.md": "We make sure.\n`make test` `make tea`\n    make soup  # hot\n" +
			"  $ make rice RACE=1\nmake no mistake\n",
	}, []string{
		"Makefile: bare has no ## help",
		"README.md: the Makefile has no target tea",
		"README.md: the Makefile has no target soup",
		"README.md: the Makefile has no target rice",
	}},
	"the code cites every rule of the protocol": {uncited, map[string]string{
		protocol:      "## 1 Roles\n## 2 Votes\n### 2.1 Yes\n### 2.2 No\n### 2.3 Maybe\n### 2.1 Yes\n",
		"a/a.go":      "package a // \u00a72.1: yes. Also \u00a71.",
		"a/b.go":      "package a // \u00a72.9 and \u00a7x",
		"a/a_test.go": "package a // \u00a72.2 is tested, \u00a73 is not",
		"README.md":   "see \u00a72.3, \u00a72.4",
	}, []string{
		protocol + ": 2.1 stands there twice",
		"README.md: " + protocol + " has no \u00a72.4",
		"a/a_test.go: " + protocol + " has no \u00a73",
		"a/b.go: " + protocol + " has no \u00a72.9",
		"a/b.go: " + protocol + " has no \u00a7",
		protocol + ": no code cites \u00a72.2",
		protocol + ": no code cites \u00a72.3",
	}},
	"a script or a test holds every rule of the protocol": {unheld, map[string]string{
		protocol:           "### 2.1 Yes\n### 2.2 No\n### 2.3 Maybe\n### 2.4 Never\n",
		scripts + "a.txt":  "# Yes: \u00a72.1.",
		scripts + "no.yml": "\u00a72.4",
		"a/a_test.go": "package a\n\n// No: \u00a72.2.\nfunc TestNo() {}\n\n" +
			"// \u00a72.3\nfunc x() {}",
		scenesIn: `package elector_test; var _ = with("one")`,
		byHand: "# Mutants\n\nbad\nrules: \u00a72.4\nscene: two\nfile: a\n\n" +
			"worse\ntest: TestX\nfile: a\n",
	}, []string{
		protocol + ": no script and no test cites \u00a72.3",
		protocol + ": no script and no test cites \u00a72.4",
		byHand + ": " + scenesIn + ` has no scene "two"`,
		byHand + ": names no rule: worse",
		byHand + ": there is no TestX",
	}},
}

// imports is the source of a package that imports packages of the module.
func imports(folders ...string) string {
	source := "package a"
	for _, folder := range folders {
		source += "; import _ \"" + module + "/" + folder + "\""
	}
	return source
}

const foreign = "package lsn; import (_ \"cmp\"; _ \"github.com/hashicorp/go-hclog\"; _ \"" +
	module + "/netmesh\")"

const impureCode = "package a\nvar x = time.Now\nfunc f() { go f() }\nfunc g() { new(sync.WaitGroup).Go(f) }\n"

var words = strings.Repeat("word ", 21)

// function is the source of a function of so many lines.
func function(lines int) string {
	return "package a\n\nfunc f() {\n" + strings.Repeat("\n", lines-2) + "}\n"
}

func TestTheTreeKeepsItsRules(t *testing.T) {
	whole := read(t, repository())
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, rule.want, rule.broken(read(t, tree(rule.example))), "the example")
			require.Empty(t, rule.broken(whole))
		})
	}
}
