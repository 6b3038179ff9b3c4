package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// machine is where, when and with which versions the figures were taken.
type machine struct {
	cpu, kernel, golang string
	cores               int
	flush               time.Duration // median of a write that is flushed to the nodes' disk
	date                time.Time
	versions            map[string]string // by module
}

// compared are the modules whose versions the page shows, and the programs that contain them.
var compared = map[string]string{
	"github.com/hashicorp/raft": "raft", "github.com/hashicorp/raft-boltdb/v2": "raft",
	"go.etcd.io/etcd/server/v3": "etcd",
}

func describe(dir string) (machine, error) {
	m := machine{cpu: processor(), golang: runtime.Version(), cores: runtime.NumCPU(),
		date: time.Now(), versions: map[string]string{}}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return m, err
	}
	m.kernel, _, _ = strings.Cut(strings.TrimSpace(string(release)), "-")
	if m.flush, err = flushTime(dir, 10); err != nil {
		return m, err
	}
	program, err := os.Executable()
	if err != nil {
		return m, err
	}
	for module, name := range compared {
		info, err := buildinfo.ReadFile(filepath.Join(filepath.Dir(program), name))
		if err != nil {
			continue // only this elector is measured
		}
		for _, dep := range info.Deps {
			if dep.Path == module {
				m.versions[module] = dep.Version
			}
		}
	}
	return m, nil
}

// processor is the model of the machine's CPU.
func processor() string {
	files, err := procfs.NewDefaultFS()
	if err != nil {
		return runtime.GOARCH
	}
	cpus, _ := files.CPUInfo() // there is none on some machines
	if len(cpus) == 0 {
		return runtime.GOARCH
	}
	return cmp.Or(cpus[0].ModelName, runtime.GOARCH)
}

// flushTime is the median time of a write of that size that is flushed to the disk.
func flushTime(dir string, size int) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "flush"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var took []time.Duration
	for range 200 {
		began := time.Now()
		if _, err := f.Write(make([]byte, size)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("flush: %w", err)
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.5), nil
}
