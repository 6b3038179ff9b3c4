package health

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/command"
	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// DiskTimeout is how long a sync may take by default. It is longer than that of other probes, and
// one failure counts: three periods without an answer are one sync that hangs. Disks that are
// only busy, or share their bandwidth, take a second now and then.
const DiskTimeout = 3 * time.Second

// diskFile is the file of the disk's probe. One that a killed process has left is used again.
const diskFile = "health.probe"

// Disk is the probe "disk": it writes a small file in a directory, syncs it, and removes it. If
// the directory hangs, one goroutine waits for it until it goes on.
func Disk(dir string) Probe {
	return Probe{
		Name: "disk", Action: "a sync in " + dir, Timeout: DiskTimeout, Failures: 1,
		Check: func(context.Context) error { return syncIn(dir) },
	}
}

func syncIn(dir string) error {
	path := filepath.Join(dir, diskFile)
	f, err := limit.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("whether this disk takes writes; it may be removed\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// maxBody is how many bytes of an answer are read.
const maxBody = 4096

// URL is the probe "url": it asks with GET, each time over a new connection, without proxies.
// A status of 2xx is fit. Otherwise, for redirects too, status and first line of the body say why.
func URL(address string) Probe {
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return Probe{Name: "url", Action: "an answer", Check: func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		var wrong *url.Error
		if errors.As(err, &wrong) { // without the URL, which may have a secret
			err = wrong.Err
		}
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			return nil
		}
		line, _, _ := bufio.NewReader(io.LimitReader(resp.Body, maxBody)).ReadLine()
		return fmt.Errorf("%s", strings.TrimRight(resp.Status+": "+string(line), ": "))
	}}
}

// Command is the probe "command": it runs a command with these variables (nil: those of this
// process). Exit status 0 is fit; otherwise the last line of its output says why. At the time-out
// its process group is killed.
func Command(env []string, argv ...string) Probe {
	return Probe{Name: "command", Action: "the command", Check: func(ctx context.Context) error {
		output, err := command.Run(ctx, env, argv...)
		if last := output[strings.LastIndex(output, "\n")+1:]; err != nil && last != "" {
			return errors.New(last)
		}
		return err
	}}
}
