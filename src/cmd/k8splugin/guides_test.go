package main

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// actAsProgram makes the test binary act as k8splugin, so that scripts can call it.
const actAsProgram = "K8SPLUGIN_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(actAsProgram) != "" {
		os.Exit(execute(killedAtWrites()))
	}
	// The tests mostly wait for the API server's controllers.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestGuides runs the guides and the first session of the README as their readers do: beside a
// service with the region that `make run` registers, in one shell for each text.
//
// A block ```sh contains commands. A block without a language directly after it shows their
// output. In it, … stands for any text, and a line … for any lines. Runs of spaces are equal to
// one space. Commands whose output is not shown must succeed. Other blocks are not run.
func TestGuides(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../docs/guides/*.md")
	if err != nil || len(files) < 2 {
		t.Fatalf("there are no guides: %v", err)
	}
	for _, file := range append(files, "../../../README.md") {
		name := filepath.Base(file)
		if name == "deploy.md" { // needs Docker, and a cluster that runs the service
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(content), "\n")
			first, end := 0, len(lines)
			if name == "README.md" {
				first = slices.Index(lines, "## A first session")
				end = first + 1 + slices.IndexFunc(lines[first+1:], func(line string) bool { return strings.HasPrefix(line, "## ") })
			}
			newGuide(t).follow(name, guideBlocks(t, lines[:end], first))
		})
	}
}

// guideTime limits the time of a guide: many times what it takes.
const guideTime = 5 * time.Minute

// guideBlock is a block of commands in a guide, and the output that the guide shows.
type guideBlock struct {
	line     int
	commands []string
	shown    bool
	output   []string
}

// guideBlocks returns the blocks of commands in a text, from the line with an index on.
func guideBlocks(t *testing.T, lines []string, first int) []guideBlock {
	t.Helper()
	var out []guideBlock
	adjacent := false // only empty lines are between the last block of commands and here
	for i := first; i < len(lines); i++ {
		language, fence := strings.CutPrefix(lines[i], "```")
		if !fence {
			adjacent = adjacent && lines[i] == ""
			continue
		}
		size := slices.Index(lines[i+1:], "```")
		if size < 0 {
			t.Fatalf("line %d: the block has no end", i+1)
		}
		block := lines[i+1 : i+1+size]
		switch {
		case language == "sh":
			out = append(out, guideBlock{line: i + 1, commands: block})
		case language == "" && adjacent:
			out[len(out)-1].shown, out[len(out)-1].output = true, block
		case language == "":
			t.Errorf("line %d: output without commands directly before it", i+1)
		}
		adjacent = language == "sh"
		i += size + 1
	}
	if len(out) == 0 {
		t.Fatal("it has no commands")
	}
	return out
}

// guide runs the commands of a text.
type guide struct {
	t     *testing.T
	dir   string
	ports map[string]string // addresses in the text, and those that replace them
}

// newGuide starts the service that a guide finds running.
func newGuide(t *testing.T) *guide {
	t.Helper()
	g := &guide{t: t, dir: t.TempDir(), ports: map[string]string{}}
	p := serveProgram(t, filepath.Join(g.dir, "running"))
	p.want(http.StatusCreated, p.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	g.ports["127.0.0.1:9015"] = strings.TrimPrefix(p.url, "http://")
	root, err := filepath.Abs("../../../deployments")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(g.dir, "kubeconfig")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Symlink(root, filepath.Join(g.dir, "deployments")),
		os.WriteFile(kubeconfig, clustertest.Kubeconfig(t), 0o600),
		os.Mkdir(filepath.Join(g.dir, "bin"), 0o700),
		g.script("k8splugin", actAsProgram+"=1 exec '"+program+"' \"$@\""),
		g.script("make", `test "$*" = "-s sandbox" && echo '`+kubeconfig+`'`), // the guides need no other target
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// script creates a program in the folder bin.
func (g *guide) script(name, text string) error {
	return os.WriteFile(filepath.Join(g.dir, "bin", name), []byte("#!/bin/sh\n"+text+"\n"), 0o700) //nolint:gosec // the shell executes it
}

var loopbackAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// free replaces the addresses in a text by free ones.
func (g *guide) free(text string) string {
	return loopbackAddress.ReplaceAllStringFunc(text, func(written string) string {
		if g.ports[written] == "" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				g.t.Fatal(err)
			}
			g.ports[written] = l.Addr().String()
			_ = l.Close()
		}
		return g.ports[written]
	})
}

// blockEnd is the line that the shell prints after a block: its index, and 1 if a command has failed.
var blockEnd = regexp.MustCompile(`(?m)^@@ (\d+) (\d)\n`)

// follow runs the blocks in one shell, and compares the outputs.
func (g *guide) follow(file string, blocks []guideBlock) {
	g.t.Helper()
	script := &strings.Builder{}
	script.WriteString("failed=0; trap failed=1 ERR\n")
	for i, b := range blocks {
		fmt.Fprintf(script, "%s\necho '@@' %d $failed; failed=0\n", g.free(strings.Join(b.commands, "\n")), i)
	}
	rest := g.run(script.String())
	for written, used := range g.ports {
		rest = strings.ReplaceAll(rest, used, written)
	}
	for i, b := range blocks {
		end := blockEnd.FindStringSubmatchIndex(rest)
		if end == nil || rest[end[2]:end[3]] != strconv.Itoa(i) {
			g.t.Fatalf("%s:%d: the shell ended here:\n%s", file, b.line, rest)
		}
		output, failed := rest[:end[0]], rest[end[4]:end[5]] == "1"
		rest = rest[end[1]:]
		if b.shown && !sameOutput(b.output, strings.Split(strings.TrimSuffix(output, "\n"), "\n")) {
			g.t.Errorf("%s:%d: the guide shows\n%s\nthe output is\n%s", file, b.line, strings.Join(b.output, "\n"), output)
		}
		if !b.shown && failed {
			g.t.Errorf("%s:%d: a command failed:\n%s", file, b.line, output)
		}
	}
}

// run runs a script and returns its output. Programs that it leaves in the background are killed.
func (g *guide) run(script string) string {
	g.t.Helper()
	output := filepath.Join(g.dir, "output")
	file, err := os.Create(output)
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), guideTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, file, file
	cmd.Env = []string{
		"HOME=" + g.dir, "TMPDIR=" + g.dir, "PATH=" + g.dir + "/bin:" + os.Getenv("PATH"), "K8SPLUGIN_SERVER=http://" + g.ports["127.0.0.1:9015"],
		"GORACE=" + os.Getenv("GORACE"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	if err == nil {
		defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
		_ = cmd.Wait() // the last command may fail
	}
	text, readErr := os.ReadFile(output)
	if err != nil || readErr != nil {
		g.t.Fatal(err, readErr)
	}
	return string(text)
}

// sameOutput reports whether an output is the one that a guide shows.
func sameOutput(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == "…":
		return sameOutput(want[1:], got) || len(got) > 0 && sameOutput(want, got[1:])
	case len(got) == 0:
		return false
	}
	words := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(words(want[0])), "…", ".*") + "$"
	same, err := regexp.MatchString(pattern, words(got[0]))
	return err == nil && same && sameOutput(want[1:], got[1:])
}

// TestTroubleshootingIsWhole checks that the guide leads from each alert to its runbook, and that
// the commands of its tables exist.
func TestTroubleshootingIsWhole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/guides/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(deployments + "/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if row := "| [" + alert[1] + "](../observability.md#" + strings.ToLower(alert[1]) + ") |"; !strings.Contains(string(text), row) {
			t.Errorf("no row %q", row)
		}
	}
	commands := regexp.MustCompile("`k8splugin ([^`…]+)`").FindAllStringSubmatch(string(text), -1)
	if len(commands) < 20 {
		t.Errorf("there are only %d commands", len(commands))
	}
	for _, command := range commands {
		found, args, err := testProcess(io.Discard, io.Discard).command().Find(strings.Fields(command[1]))
		if err == nil {
			err = found.ParseFlags(args)
		}
		if err == nil {
			err = found.ValidateArgs(found.Flags().Args())
		}
		if err != nil || !found.Runnable() || found.HasSubCommands() {
			t.Errorf("`k8splugin %s` is no command: %v", command[1], err)
		}
	}
}
