package ansible_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

// real returns a runner over Ansible itself, and a job for one host.
func real(t *testing.T, how, mode string, needs ...string) (world, site.Job) {
	t.Helper()
	needAnsible(t, needs...)
	w := newWorld(t, "ansible-playbook")
	h := sitetest.New(t)
	m := h.Secrets()
	m.Secrets = map[string]nf.Secret{"token": nf.Secret("s3cret-token")}
	return w, site.Job{
		Action: site.Build, Secrets: m,
		Site: nf.Site{ID: "edge", UID: "u1", Hosts: []nf.SiteHost{h.Site()}, Parameters: map[string]any{
			"how": how, "mode": mode, "given": "{{ lookup('pipe', 'echo ran-on-the-controller') }} \u007f\u0085\ufeff\U0001F600",
		}},
	}
}

// without is set to test without Ansible explicitly.
const without = "K8SPLUGIN_TEST_WITHOUT_ANSIBLE"

// needAnsible fails the test where Ansible or one of the programs is missing:
// a test that is skipped silently proves nothing.
func needAnsible(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range append(programs, "ansible-playbook") {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv(without) == "1" {
			t.Skipf("%s is not installed, and %s=1", program, without)
		}
		t.Fatalf("%s is not installed: install it (make test-deps), or set %s=1", program, without)
	}
}

// TestAnsible runs a playbook of the test's with Ansible itself, on this machine
// and, by SSH, on the test's host.
func TestAnsible(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		how    string
		edit   func(*site.Job)
		needs  []string
	}{
		"Local":    {reason: "without a connection", how: "local"},
		"Key":      {reason: "with the key, which the agent has", how: "ssh", needs: []string{"ssh"}},
		"Password": {reason: "with the password, which comes through the pipe", how: "ssh", needs: []string{"ssh", "sshpass"}, edit: func(j *site.Job) { j.Secrets.PrivateKey, j.Secrets.Password = nil, nf.Secret(sitetest.Password) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j := real(t, tc.how, "good", tc.needs...)
			if tc.edit != nil {
				tc.edit(&j)
			}
			events, kubeconfig, err := w.run(t.Context(), j)
			if err != nil || kubeconfig != "apiVersion: v1" {
				t.Fatalf("%s: %v, kubeconfig %q, after\n%s", tc.reason, err, kubeconfig, strings.Join(events, "\n"))
			}
			for _, want := range []string{
				"play", "ok Say what was proven n1 PROVED host", "ok Say what was given n1 given: {{ lookup('pipe', 'echo ran-on-the-controller') }} \u007f\u0085\ufeff\U0001F600",
				"changed Run a program n1", "ignored Fail in a hidden way n1 hidden: the task has no_log", "skipped Fail for a reason n1", "changed Leave the kubeconfig n1",
			} {
				if !slices.Contains(events, want) {
					t.Errorf("%s: there is no event %q among\n%s", tc.reason, want, strings.Join(events, "\n"))
				}
			}
			if strings.Contains(strings.Join(events, "\n"), "s3cret") {
				t.Errorf("%s: the events tell a secret:\n%s", tc.reason, strings.Join(events, "\n"))
			}
			w.wantClean(t)
		})
	}
}

func TestAnsibleFailures(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		how     string
		mode    string
		edit    func(*testing.T, *site.Job)
		kind    nf.Kind
		why     string
		message string // a regular expression
	}{
		"Task": {"a task that fails is named", "local", "failing", nil, nf.Failed, "task", `task "Fail for a reason" on host n1: no more room`},
		// Ansible passes on what ssh said only if ssh has ended a millisecond after
		// Ansible could not write to it.
		"AnotherHost": {"Ansible's own connection proves the host, too", "ssh", "good", func(t *testing.T, j *site.Job) { j.Site.Hosts[0].Key = sitetest.New(t).Key() }, nf.Unreachable, "host", `cannot connect to host n1: task "Run a program".*(Host key verification failed|Data could not be sent to remote host)`},
		"Variable":    {"a playbook that lacks a variable", "local", "good", func(_ *testing.T, j *site.Job) { delete(j.Site.Parameters, "given") }, nf.Failed, "task", "given"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j := real(t, tc.how, tc.mode, "ssh")
			if tc.edit != nil {
				tc.edit(t, &j)
			}
			events, _, err := w.run(t.Context(), j)
			if nf.KindOf(err) != tc.kind || nf.ReasonOf(err) != tc.why || err == nil || !regexp.MustCompile("(?s)"+tc.message).MatchString(err.Error()) {
				t.Errorf("%s: the error is %v (%s, %q), after\n%s", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err), strings.Join(events, "\n"))
			}
			w.wantClean(t)
		})
	}
}

func TestAnsibleCancel(t *testing.T) {
	t.Parallel()
	w, j := real(t, "ssh", "waiting", "ssh")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range w.Run(ctx, j) {
		if e.Task == "Wait" {
			cancel()
		}
		if e.Kind == "" && !errors.Is(err, context.Canceled) {
			t.Errorf("a run that is cancelled ends with %v", err)
		}
	}
	w.wantClean(t)
}
