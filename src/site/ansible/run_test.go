package ansible_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/ansible"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

// world is a runner over the stand-in for ansible-playbook, and the folders of a
// test.
type world struct {
	*ansible.Runner

	temp, report string
}

func newWorld(t *testing.T, program string) world {
	t.Helper()
	// Sockets have short names.
	temp, err := os.MkdirTemp("", "a") //nolint:usetesting // the names of a test's folders are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	r, err := ansible.New(ansible.Config{Kud: "testdata/kud", Program: program, Dir: temp})
	if err != nil {
		t.Fatal(err)
	}
	return world{r, temp, t.TempDir()}
}

const standIn = "testdata/ansible-playbook"

func (w world) job(t *testing.T, mode string) site.Job {
	t.Helper()
	h := sitetest.New(t)
	m := h.Secrets()
	m.Secrets = map[string]nf.Secret{"token": nf.Secret("s3cret-token")}
	m.BecomePassword = nf.Secret("s3cret-sudo")
	second := h.Site()
	second.Name, second.Address, second.Port, second.Role = "n2", "worker.example.com", 22, nf.Worker
	return site.Job{
		Action: site.Build, Secrets: m,
		Site: nf.Site{
			ID: "edge", UID: "u1", Hosts: []nf.SiteHost{h.Site(), second}, Roles: []string{"multus"},
			Parameters: map[string]any{"stand_in": mode, "report": w.report, "nested": map[string]any{"list": []any{1.0, true, "{{ x }}"}}},
			Proxy:      nf.SiteProxy{HTTP: "http://proxy:3128"},
		},
	}
}

// run collects the events of a run.
func (w world) run(ctx context.Context, j site.Job) (events []string, kubeconfig string, err error) {
	for e, failed := range w.Run(ctx, j) {
		if failed != nil {
			err = failed
			continue
		}
		if len(e.Kubeconfig) > 0 {
			kubeconfig = string(e.Kubeconfig)
			continue
		}
		events = append(events, strings.TrimSpace(strings.Join([]string{string(e.Kind), e.Task, e.Host, e.Message}, " ")))
	}
	return events, kubeconfig, err
}

func (w world) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.report, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (w world) wantClean(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(w.temp)
	if err != nil || len(left) > 0 {
		t.Errorf("the run has left %v, %v", left, err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standIn)
	j := w.job(t, "good")
	events, kubeconfig, err := w.run(t.Context(), j)
	if err != nil || kubeconfig != "apiVersion: v1" {
		t.Fatalf("a run that succeeds: %v, kubeconfig %q", err, kubeconfig)
	}
	want := []string{
		"play", "task host : set", "changed host : set n1", "stats  n1 changed=1 failures=0",
		"play", "task host : set", "ok host : prove n1 PROVED host",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	for _, name := range []string{"environment", "arguments", "inventory", "known_hosts", "files"} {
		text := w.read(t, name)
		if strings.Contains(text, "s3cret") || strings.Contains(text, strings.Split(string(j.Secrets.PrivateKey), "\n")[1]) {
			t.Errorf("a secret is in the %s of the run", name)
		}
	}
	vars := w.read(t, "variables")
	for _, part := range []string{
		`"kud_roles": [!unsafe "multus", !unsafe "region"]`, `"nested": {"list": [1, true, !unsafe "{{ x }}"]}`, `"token": !unsafe "s3cret-token"`,
		`"ansible_become_password": !unsafe "s3cret-sudo"`, `"kud_proxy": {"http": !unsafe "http://proxy:3128"`, `"region_register": false`,
	} {
		if !strings.Contains(vars, part) {
			t.Errorf("the variables lack %s:\n%s", part, vars)
		}
	}
	if pinned := w.read(t, "known_hosts"); !strings.Contains(pinned, "[127.0.0.1]:") || !strings.Contains(pinned, "\nworker.example.com "+j.Site.Hosts[0].Key) {
		t.Errorf("the pinned keys are\n%s", pinned)
	}
	w.wantClean(t)
}

func TestActions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		action    site.Action
		dead      []string
		playbooks string // the ends of the lines of arguments
		vars      string
		inventory bool // the worker that leaves is in it
		verify    any
	}{
		"Build":    {"a worker that leaves is not built, and the rest is proven", site.Build, nil, "site.yml verify.yml", `"kud_roles"`, false, nil},
		"Unproven": {"unless that is not wanted", site.Build, nil, "site.yml", `"kud_roles"`, false, false},
		"Shrink":   {"it is taken out, by itself", site.Shrink, nil, "--limit n2,n3 remove.yml", `"kud_remove": true`, true, nil},
		"Dead":     {"one that is gone is not talked to", site.Shrink, []string{"n2"}, "forget.yml --limit n3 remove.yml", `"kud_dead": [!unsafe "n2"]`, true, nil},
		"Reset":    {"everything is reset", site.Reset, nil, "remove.yml", `"kud_remove": true`, true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, standIn)
			j := w.job(t, "good")
			j.Action, j.Targets, j.Dead = tc.action, []string{"n2", "n3"}, tc.dead
			j.Site.Hosts[1].State = nf.HostLeaving
			if tc.verify != nil {
				j.Site.Parameters["kud_verify"] = tc.verify
			}
			if _, _, err := w.run(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			var said []string
			for line := range strings.Lines(w.read(t, "arguments")) {
				if line = strings.TrimSpace(line); strings.HasSuffix(line, ".yml") || line == "--limit" || strings.HasPrefix(line, "n") {
					said = append(said, filepath.Base(line))
				}
			}
			if got := strings.Join(said, " "); got != tc.playbooks || !strings.Contains(w.read(t, "variables"), tc.vars) {
				t.Errorf("%s: it ran %s with\n%s", tc.reason, got, w.read(t, "variables"))
			}
			if there := strings.Contains(w.read(t, "inventory"), "n2"); there != tc.inventory {
				t.Errorf("%s: that it is in the inventory is %t", tc.reason, there)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		program string
		mode    string
		kind    nf.Kind
		why     string
		message string
	}{
		"Task":        {"the task is named, and the host", standIn, "failing", nf.Failed, "task", `cannot run task "kubernetes : init" on host n1: no more room`},
		"Unreachable": {"a host that is gone is the reason, whatever else failed", standIn, "gone", nf.Unreachable, "host", `host n2: task "Gathering Facts": no route`},
		"Unproven":    {"what was built and does not work is a failure", standIn, "unproven", nf.Failed, "task", `task "kubernetes : prove" on host n1: not ready`},
		"Broken":      {"what the program says is told", standIn, "broken", nf.Failed, "ansible", "the playbook is no YAML"},
		"NoAnsible":   {"a service without Ansible says so", "no-such-ansible-playbook", "good", nf.Unsupported, "ansible", "found no Ansible installation"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.program)
			_, kubeconfig, err := w.run(t.Context(), w.job(t, tc.mode))
			if nf.KindOf(err) != tc.kind || nf.ReasonOf(err) != tc.why || err == nil || !strings.Contains(err.Error(), tc.message) || kubeconfig != "" {
				t.Errorf("%s: the error is %v (%s, %q)", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err))
			}
			w.wantClean(t)
		})
	}
}

// TestCancel: a run that is cancelled ends, also what does not want to.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standIn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range w.Run(ctx, w.job(t, "forever")) {
		if e.Message == "begun" {
			cancel()
		}
		if e.Kind == "" && !errors.Is(err, context.Canceled) {
			t.Errorf("a run that is cancelled ends with %v", err)
		}
	}
	w.wantDead(t)
	w.wantClean(t)
}

// TestLeft: so does one whose events no longer have a reader.
func TestLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standIn)
	for e, err := range w.Run(t.Context(), w.job(t, "forever")) {
		if err != nil {
			t.Error(err)
		}
		if e.Message == "begun" {
			break
		}
	}
	w.wantDead(t)
	w.wantClean(t)
}

func (w world) wantDead(t *testing.T) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, name := range []string{"leader", "child"} {
		stat := filepath.Join("/proc", strings.TrimSpace(w.read(t, name)), "stat")
		for {
			state, err := os.ReadFile(stat)
			if err != nil || strings.Contains(string(state), ") Z ") {
				break
			}
			select {
			case <-deadline:
				t.Fatalf("the run's %s is still alive", name)
			case <-tick.C:
			}
		}
	}
}
