package cli

import (
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelp checks the form of the help texts of every command.
func TestHelp(t *testing.T) {
	root := &cobra.Command{Use: "k8splugin"}
	root.AddCommand(Commands(Env{Getenv: func(string) string { return "" }})...)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if text := sub.Short; len(text) > 50 || strings.HasSuffix(text, ".") || !unicode.IsUpper(rune(text[0])) {
				t.Errorf("%s: the summary %q is not one imperative of at most 50 characters without a period", sub.CommandPath(), text)
			}
			sub.Flags().VisitAll(func(f *pflag.Flag) { checkUsage(t, sub, f) })
			checkExamples(t, sub)
			walk(sub)
		}
	}
	walk(root)
}

func checkUsage(t *testing.T, cmd *cobra.Command, f *pflag.Flag) {
	t.Helper()
	if words := len(strings.Fields(f.Usage)); !f.Hidden && (words == 0 || words > 25 || strings.Contains(f.Usage, ". ") || strings.HasSuffix(f.Usage, ".")) {
		t.Errorf("%s --%s: the description has %d words, and must be one phrase of at most 25: %q", cmd.CommandPath(), f.Name, words, f.Usage)
	}
}

// checkExamples requires examples of a command with required flags. Each must be
// a valid command line.
func checkExamples(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	if strings.Contains(cmd.Use, " -") && cmd.Example == "" {
		t.Errorf("%s: its required flags have no example", cmd.CommandPath())
	}
	for line := range strings.Lines(cmd.Example) {
		words := strings.Fields(line)
		path := strings.Fields(cmd.CommandPath())
		if len(words) < len(path) || strings.Join(words[:len(path)], " ") != cmd.CommandPath() {
			t.Errorf("%s: the example %q is of another command", cmd.CommandPath(), line)
			continue
		}
		if err := cmd.ParseFlags(words[len(path):]); err != nil {
			t.Errorf("%s: the example %q: %v", cmd.CommandPath(), line, err)
		} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: the example %q: %v", cmd.CommandPath(), line, err)
		}
	}
}
