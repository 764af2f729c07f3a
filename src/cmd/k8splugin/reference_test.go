package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const referenceHead = `# Commands

All commands of ` + "`k8splugin`" + ` with their arguments and flags, as ` + "`--help`" + ` shows them. The page is written by ` + "`make golden`" + `. [cli.md](cli.md) explains how the client works, and
[operations.md](operations.md) how the service does.

## Flags of the client

Each command that talks to the service also has these flags.
`

// TestReference compares the reference of the commands with the program.
func TestReference(t *testing.T) {
	t.Parallel()
	const file = "../../../docs/commands.md"
	root := testProcess(io.Discard, io.Discard).command()
	client, _, err := root.Find([]string{"instance"})
	if err != nil {
		t.Fatal(err)
	}
	page := &strings.Builder{}
	page.WriteString(referenceHead)
	describeFlags(page, client.PersistentFlags())
	for _, sub := range root.Commands() {
		describeCommand(page, sub)
	}
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil { //nolint:gosec // a page that everybody may read
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), page.String()); diff != "" {
		t.Errorf("docs/commands.md is not up to date; run make golden (-written +program):\n%s", diff)
	}
}

// describeCommand writes a command and those below it.
func describeCommand(page *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || slices.Contains([]string{"help", "completion"}, cmd.Name()) {
		return
	}
	path, text := strings.Fields(cmd.CommandPath()), strings.TrimSpace(cmd.Long)
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(page, "\n%s %s\n\n%s\n", strings.Repeat("#", len(path)), strings.Join(path[1:], " "), text)
	if !cmd.HasSubCommands() {
		fmt.Fprintf(page, "\n```sh\n%s\n```\n", strings.TrimSpace(cmd.UseLine()+"\n\n"+cmd.Example))
		describeFlags(page, cmd.LocalNonPersistentFlags())
	}
	for _, sub := range cmd.Commands() {
		describeCommand(page, sub)
	}
}

// describeFlags writes a table of flags, if there are any.
func describeFlags(page *strings.Builder, flags *pflag.FlagSet) {
	head := "\n| flag | default | meaning |\n|---|---|---|\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + kind)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value := f.DefValue
		switch f.Name { // the defaults that depend on the machine
		case "data":
			value = "~/.local/share/k8splugin"
		case "replica-name":
			value = "name of the host"
		}
		if slices.Contains([]string{"", "false", "0", "0s", "[]"}, value) {
			value = "-"
		}
		page.WriteString(head)
		head = ""
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(usage, "|", `\|`))
	})
}
