package main

import (
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   string
		code   int
		say    string
	}{
		"Nothing":    {"without a verb the usage is all there is to say", "", exitUsage, "Usage:"},
		"Help":       {"help is an answer, not a failure", "help", 0, "Usage:"},
		"Unknown":    {"a verb that is none is named", "jump", exitUsage, "unknown command jump"},
		"Flag":       {"a flag that is none is named", "up --speed 3", exitUsage, "-speed"},
		"Number":     {"a flag's value is checked", "up --nodes many", exitUsage, "many"},
		"Argument":   {"what nobody reads is refused", "down everything", exitUsage, "no arguments"},
		"NoCommand":  {"exec has nothing to run", "exec --nodes 3 --", exitUsage, "needs a command"},
		"NotUp":      {"down of nothing is no failure", "down --dir /no/such/folder", 0, "No sandbox is running."},
		"Hosts":      {"the network of the hosts has no room for more", "exec --hosts 10 -- true", exitUsage, "from 0 to 9"},
		"Images":     {"simulated nodes have no images", "exec --images . -- true", exitUsage, "for the nodes of --hosts"},
		"BuildWords": {"build builds all or nothing", "build etcd", exitUsage, "no arguments"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			code, err := run(t.Context(), strings.Fields(tc.args), &out, &out)
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			if code != tc.code || !strings.Contains(said, tc.say) {
				t.Errorf("%s: code %d, want %d; said %q, want %q in it", tc.reason, code, tc.code, said, tc.say)
			}
		})
	}
}
