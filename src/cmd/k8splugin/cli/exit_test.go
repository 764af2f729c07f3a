package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func TestExitCode(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   int
	}{
		"None":        {"success is 0", nil, 0},
		"Plain":       {"anything else is a failure", errors.New("x"), 1},
		"Usage":       {"usage is kept through wrapping", fmt.Errorf("x: %w", Usage(errors.New("y"))), 2},
		"Problem":     {"the server's kind decides", &problem{Kind: nf.NotFound}, 3},
		"Wrapped":     {"also when wrapped", fmt.Errorf("x: %w", &problem{Kind: nf.Busy}), 4},
		"Unreachable": {"the server cannot reach the region", &problem{Kind: nf.Unreachable}, 6},
		"Timeout":     {"an operation took too long", &problem{Kind: nf.Timeout}, 7},
		"Local":       {"an error of our own packages has a kind too", nf.E(nf.NotFound, "read", "x", nil), 3},
		"Silent":      {"lint and diff have said it all", errSilent, 1},
		"Several":     {"of several the first decides", multiError{&problem{Kind: nf.Exists}, Usage(errors.New("y"))}, 4},
	}
	for name, tc := range cases {
		if got := ExitCode(tc.err); got != tc.want {
			t.Errorf("%s: %s: got %d, want %d", name, tc.reason, got, tc.want)
		}
	}
	if Usage(nil) != nil {
		t.Error("no error is none of usage either")
	}
}

func TestReport(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"None":   {"nothing went wrong", nil, ""},
		"Silent": {"all was said already", errSilent, ""},
		"Plain":  {"one line", errors.New("it broke"), "error: it broke\n"},
		"Escape": {"a text from elsewhere cannot drive the terminal", errors.New("a\x1b[31mb\rc"), "error: a\uFFFD[31mb\uFFFDc\n"},
		"Violations": {
			"the detail includes the violations, wherever it names them, so they are printed once",
			&problem{
				Detail: "cannot read it: a.yaml:3: spec: bad; next attempt in 5s",
				Errors: []wire.Violation{{File: "a.yaml", Line: 3, Field: "spec", Message: "bad"}},
			},
			"error: cannot read it: a.yaml:3: spec: bad; next attempt in 5s\n",
		},
		"Lint": {
			"the violations that lint finds get a line each",
			lintError{"package web is not valid", nf.Violations{{File: "a.yaml", Line: 3, Message: "bad"}, {File: "b.yaml", Message: "worse"}}},
			"error: package web is not valid\n  a.yaml:3: bad\n  b.yaml: worse\n",
		},
		"Defect":  {"a defect is found in the log by its request", &problem{Detail: "x", Status: 500, RequestID: "R"}, "error: x\n  request: R\n"},
		"Several": {"each by itself", multiError{errors.New("a"), &problem{Title: "b"}}, "error: a\nerror: b\n"},
	}
	for name, tc := range cases {
		var b strings.Builder
		Report(&b, tc.err)
		if b.String() != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, b.String(), tc.want)
		}
	}
}
