package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// box builds tests of a changed tree, without a copy of it.
type box struct {
	root string // of the tree
	dir  string // for what is built
}

// flat turns a path of the tree into the name of one file.
func flat(name string) string { return strings.ReplaceAll(name, "/", "_") }

// build makes the test binary of a package, in a tree in which some files, named from its top,
// have other text. The output of the compiler is an error's text.
func (b *box) build(ctx context.Context, pkg string, changed map[string][]byte) (
	binary string, err error) {
	replace := map[string]string{}
	for file, text := range changed {
		with := filepath.Join(b.dir, flat(file))
		if err := os.WriteFile(with, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(b.root, file)] = with
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(b.dir, flat(pkg)+".test")
	// What only a debugger reads takes half of the time to link.
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-gcflags=-e",
		"-overlay", list, "-o", binary, "./"+pkg)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
}

// mostMemory is what a test may have, in KiB: a mutant may fill all there is.
const mostMemory = 6 << 20

// test runs tests of a package, with a mutant; 0 for none. It reports what they print, and
// whether they pass.
func (b *box) test(ctx context.Context, pkg, binary string, mutant int, limit time.Duration,
	args ...string) (output string, passed bool) {
	// The test itself ends first, and prints what it does.
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	args = append([]string{"-c", `ulimit -v "$1" 2>/dev/null; shift; exec "$@"`, "sh",
		strconv.Itoa(mostMemory), binary, "-test.v", "-test.failfast",
		"-test.timeout=" + limit.String()}, args...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = filepath.Join(b.root, pkg)
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(mutant))
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.ProcessState == nil || ctx.Err() != nil && cmd.ProcessState.ExitCode() < 0 {
		out.WriteString(expired)
	}
	return out.String(), err == nil
}

var (
	// failed and passed are the lines of a test of the package that has ended.
	failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	passed = regexp.MustCompile(`(?m)^--- (?:PASS|SKIP): (\w+) \(([\d.]+)s\)`)
	// running is the line of a test that began.
	running = regexp.MustCompile(`(?m)^=== (?:RUN|CONT)\s+(\w+)`)
)

// expired is in the output of a test that takes too long.
const expired = "panic: test timed out after"

// culprit is the test that failed, or else the one that began last.
func culprit(output string) string {
	if m := failed.FindStringSubmatch(output); m != nil {
		return m[1]
	}
	if all := running.FindAllStringSubmatch(output, -1); all != nil {
		return all[len(all)-1][1]
	}
	return "the start"
}
