package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// image is what the Dockerfile makes, as far as a test needs it.
type image struct {
	root       string // its file system
	uid, gid   uint32
	entrypoint []string
	health     []string
}

// stage is one FROM of a Dockerfile while its lines are obeyed.
type stage struct {
	image
	work string
}

// buildImage obeys a Dockerfile: those instructions that this one uses, and an
// error for any other.
func buildImage(context, file, dir string) (image, error) {
	text, err := os.ReadFile(filepath.Join(context, file))
	if err != nil {
		return image{}, err
	}
	stages := map[string]*stage{}
	var now *stage
	for _, line := range instructions(string(text)) {
		word, rest, _ := strings.Cut(line, " ")
		if word == "FROM" {
			now = &stage{image: image{root: filepath.Join(dir, strconv.Itoa(len(stages)))}, work: "/"}
			base, name, _ := strings.Cut(rest, " AS ")
			stages[name] = now
			if err := now.from(base, context); err != nil {
				return image{}, fmt.Errorf("%s: %w", line, err)
			}
			continue
		}
		if err := now.obey(word, rest, context, stages); err != nil {
			return image{}, fmt.Errorf("%s: %w", line, err)
		}
	}
	return now.image, nil
}

// instructions are the logical lines.
func instructions(text string) (lines []string) {
	text = regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// from begins with nothing, or with the tools of this machine if they are those
// that go.mod asks for.
func (s *stage) from(base, context string) error {
	mod, err := os.ReadFile(filepath.Join(context, "go.mod"))
	if err != nil {
		return err
	}
	if version, ok := strings.CutPrefix(base, "golang:"); ok &&
		!bytes.Contains(mod, []byte("\ngo "+version+".")) {
		return fmt.Errorf("go.mod wants another version of Go than %s", version)
	} else if !ok && base != "scratch" {
		return fmt.Errorf("this test knows nothing that could stand in for it")
	}
	return os.MkdirAll(s.root, 0o755)
}

func (s *stage) obey(word, rest, context string, stages map[string]*stage) error {
	switch word {
	case "WORKDIR":
		s.work = rest
		return os.MkdirAll(s.path(rest), 0o755)
	case "RUN":
		cmd := exec.Command("sh", "-c", rest)
		cmd.Dir = s.path(s.work)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	case "COPY":
		return s.copy(strings.Fields(rest), context, stages)
	case "USER":
		_, err := fmt.Sscanf(rest, "%d:%d", &s.uid, &s.gid)
		return err
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &s.entrypoint)
	case "HEALTHCHECK":
		_, command, _ := strings.Cut(rest, "CMD ")
		return json.Unmarshal([]byte(command), &s.health)
	case "VOLUME", "EXPOSE", "STOPSIGNAL":
		return nil // for whoever runs it
	}
	return fmt.Errorf("this test does not know %s", word)
}

func (s *stage) path(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.work, name)
	}
	return filepath.Join(s.root, name)
}

func (s *stage) copy(args []string, context string, stages map[string]*stage) error {
	owner := ""
	from := func(name string) string { return filepath.Join(context, name) }
	for ; strings.HasPrefix(args[0], "--"); args = args[1:] {
		flag, value, _ := strings.Cut(args[0], "=")
		switch flag {
		case "--from":
			from = stages[value].path
		case "--chown":
			owner = value
		default:
			return fmt.Errorf("this test does not know %s", flag)
		}
	}
	to := s.path(args[len(args)-1])
	for _, name := range args[:len(args)-1] {
		if err := copyInto(from(name), to, owner); err != nil {
			return err
		}
	}
	return nil
}

// copyInto copies a file into a directory, or what a directory holds except for what
// .dockerignore names and for the repository's history.
func copyInto(from, to, owner string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		within, _ := filepath.Rel(from, name) // it is below
		if within == "." && !entry.IsDir() {
			within = entry.Name()
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin"}, within) {
			return fs.SkipDir
		}
		return copyOne(name, filepath.Join(to, within), owner, entry)
	})
}

func copyOne(from, to, owner string, entry fs.DirEntry) error {
	var err error
	if entry.IsDir() {
		err = os.MkdirAll(to, 0o755)
	} else {
		err = copyFile(from, to)
	}
	if err == nil && owner != "" && os.Getuid() == 0 {
		var uid, gid int
		if _, err = fmt.Sscanf(owner, "%d:%d", &uid, &gid); err == nil {
			err = os.Lchown(to, uid, gid)
		}
	}
	return err
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode())
}
