package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
)

// TestExitCodes holds the exit codes of command lines that reach no server. Those of the
// server's responses are in package cli.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	const away = "http://127.0.0.1:1"
	cases := map[string]struct {
		reason string
		args   []string
		want   int
	}{
		"Group":           {"a group of commands shows its help", []string{"instance"}, 0},
		"Topic":           {"a help topic exists", []string{"help", "exit-codes"}, 0},
		"Version":         {"the client's version needs no server", []string{"version", "--client"}, 0},
		"NoCommand":       {"an unknown command", []string{"instances-of-all"}, 2},
		"NoVerb":          {"an unknown command of a group", []string{"instance", "nosuch"}, 2},
		"NoTopic":         {"help for nothing", []string{"help", "nosuch"}, 2},
		"NoShell":         {"a shell that is not supported", []string{"completion", "nosuch"}, 2},
		"NoImport":        {"a group of the service's commands", []string{"import", "nosuch"}, 2},
		"ExtraCompletion": {"an argument too many of a command of the library", []string{"completion", "bash", "x"}, 2},
		"ExtraServe":      {"an argument too many", []string{"serve", "extra"}, 2},
		"NoUser":          {"an argument too few", []string{"access", "hash"}, 2},
		"NoVerbFlag":      {"an unknown command with flags", []string{"wait", "instance", "web", "--for", "ready"}, 2},
		"NoFlag":          {"an unknown flag", []string{"instance", "list", "--nosuch"}, 2},
		"BadCount":        {"a number that is none", []string{"instance", "list", "--limit", "x", "--server", away}, 2},
		"BadValue":        {"a value that the command does not have", []string{"instance", "wait", "a", "--for", "x", "--server", away}, 2},
		"BadSpec":         {"a value in the command line that is no YAML", []string{"network", "create", "n", "--region", "e", "--spec", "[", "--server", away}, 2},
		"NoContext":       {"a context that does not exist", []string{"context", "use", "nosuch"}, 3},
		"NoFile":          {"a file that does not exist", []string{"instance", "create", "--region", "e", "--package", "p", "-f", bad + ".none", "--server", away}, 1},
		"BadFile":         {"a file that is no YAML", []string{"instance", "create", "--region", "e", "--package", "p", "-f", bad, "--server", away}, 1},
		"BadDeclaration":  {"likewise for declarations", []string{"apply", "-f", bad, "--server", away}, 1},
		"BadNetwork":      {"likewise for the spec of a network", []string{"network", "create", "n", "--region", "e", "--file", bad, "--server", away}, 1},
		"BadSite":         {"likewise for a site", []string{"site", "create", "-f", bad, "--server", away}, 1},
		"BadPackage":      {"lint has found errors", []string{"package", "lint", bad}, 1},
		"BadCSAR":         {"a package is no CSAR", []string{"package", "translate", bad}, 1},
		"BadRules":        {"the check of access rules has found errors", []string{"access", "check", bad}, 1},
		"Away":            {"the server is unreachable", []string{"instance", "list", "--server", away}, 5},
		"VersionAway":     {"the server's version cannot be read", []string{"version", "--server", away}, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			p := process{stdin: strings.NewReader(""), stdout: &out, stderr: &out, terminal: func(any) bool { return false }, getenv: func(key string) string {
				return map[string]string{"K8SPLUGIN_CONFIG": filepath.Join(t.TempDir(), "config.yaml")}[key]
			}}
			if tc.args[0] == "serve" {
				p.getenv = func(string) string { return "" }
			}
			if got := run(t.Context(), tc.args, p); got != tc.want {
				t.Errorf("%s: k8splugin %s: exit code %d, want %d\n%s", tc.reason, strings.Join(tc.args, " "), got, tc.want, out.String())
			}
		})
	}
}

// TestArgumentsAreUsage requires of every command that a wrong number of arguments is an
// error of usage.
func TestArgumentsAreUsage(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for n := range 8 {
			args := make([]string, n)
			for i := range args {
				args[i] = fmt.Sprintf("x%d", i)
			}
			if err := cmd.ValidateArgs(args); err != nil && cli.ExitCode(err) != 2 {
				t.Errorf("%s with %d arguments: exit code %d: %v", cmd.CommandPath(), n, cli.ExitCode(err), err)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((process{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, terminal: func(any) bool { return false }, getenv: func(string) string { return "" }}).command())
}

// TestHelpIsShort requires of the help of a verb that it lists the flags that matter.
func TestHelpIsShort(t *testing.T) {
	t.Parallel()
	for args, most := range map[string]int{"package lint": 5, "instance show": 5, "backup create": 10, "keys prune": 8, "import onap": 25} {
		var out bytes.Buffer
		p := process{stdin: strings.NewReader(""), stdout: &out, stderr: &out, terminal: func(any) bool { return false }, getenv: func(string) string { return "" }}
		if code := run(t.Context(), append(strings.Fields(args), "--help"), p); code != 0 {
			t.Errorf("%s: exit code %d", args, code)
		}
		if got := len(regexp.MustCompile(`(?m)^ +(-\w, )?--`).FindAllString(strings.Split(out.String(), "Flags for the server")[0], -1)); got > most || got == 0 {
			t.Errorf("%s lists %d flags, want at most %d:\n%s", args, got, most, out.String())
		}
	}
}

// TestHelpNames requires of the help of a command that it names results that a user meets.
func TestHelpNames(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"import tacker": "The exit code is 1 if anything differs or could not be imported",
		"import onap":   "The exit code is 1 if anything differs or could not be imported",
		"serve":         "the links in notifications, alarms, subscriptions, PM jobs and thresholds",
	} {
		var out bytes.Buffer
		p := process{stdin: strings.NewReader(""), stdout: &out, stderr: &out, terminal: func(any) bool { return false }, getenv: func(string) string { return "" }}
		if code := run(t.Context(), append(strings.Fields(args), "--help"), p); code != 0 {
			t.Errorf("%s: exit code %d", args, code)
		}
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) {
			t.Errorf("the help of %s does not say %q:\n%s", args, want, out.String())
		}
	}
}

// TestExitCodesDocumented compares the table of docs/cli.md with the help topic.
func TestExitCodesDocumented(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := process{stdin: strings.NewReader(""), stdout: &out, stderr: &out, terminal: func(any) bool { return false }, getenv: func(string) string { return "" }}
	if code := run(t.Context(), []string{"help", "exit-codes"}, p); code != 0 {
		t.Fatalf("the topic is missing: %s", out.String())
	}
	page, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	rows := regexp.MustCompile("(?m)^\\| `(\\d+)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) != 10 {
		t.Errorf("docs/cli.md has %d exit codes, want 10", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(text, row[1]+" "+row[2]) {
			t.Errorf("docs/cli.md has %q for %s, and help exit-codes does not", row[2], row[1])
		}
	}
}

// TestBadRulesReport checks that each error of the access rules has a line.
func TestBadRulesReport(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.yaml")
	if err := os.WriteFile(file, []byte("tokens: [{name: me, sha256: zz}]\ngrants: [{subjects: [\"token:me\"], role: boss, projects: [\"*\"], regions: [\"*\"]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^error: cannot use the access rules\n  \S+:1: tokens\[0\]\.sha256: [^\n]+\n  \S+:2: grants\[0\]\.role: [^\n]+\n`)
	for _, args := range [][]string{{"access", "check", file}, {"serve", "--store", "memory", "--log-level", "error", "--access-file", file}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, testProcess(io.Discard, &stderr)); code != 1 || !want.Match(stderr.Bytes()) {
			t.Errorf("%q ends with %d and prints %s", args, code, stderr.Bytes())
		}
	}
}
