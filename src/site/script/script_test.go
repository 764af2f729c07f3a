package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/script"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

func job(h *sitetest.Host, content string) site.Job {
	m := h.Secrets()
	m.Script, m.Options = nf.Secret(content), []string{"--name", "it's $HOME"}
	m.Secrets = map[string]nf.Secret{"token": nf.Secret("s3cret")}
	return site.Job{
		Action: site.Build, Secrets: m,
		Site: nf.Site{ID: "edge", UID: "u1", Region: "east", Hosts: []nf.SiteHost{h.Site()}, Parameters: map[string]any{"size": 3.0}},
	}
}

// run collects the events of a run.
func run(ctx context.Context, j site.Job) (lines []string, kubeconfig string, err error) {
	for e, failed := range (script.Runner{}).Run(ctx, j) {
		if failed != nil {
			err = failed
		}
		if e.Kind == nf.EventLine {
			lines = append(lines, e.Message)
		}
		if len(e.Kubeconfig) > 0 {
			kubeconfig = string(e.Kubeconfig)
		}
	}
	return lines, kubeconfig, err
}

// TestScriptReadsNothing: a script does not have to read its input, whatever its size.
func TestScriptReadsNothing(t *testing.T) {
	t.Parallel()
	j := job(sitetest.New(t), `#!/bin/sh
echo '{"server": "https://10.0.0.1:6443", "kubeconfig": "apiVersion: v1"}'
`)
	j.Secrets.Secrets["long"] = nf.Secret(strings.Repeat("x", 4<<20)) // more than is sent ahead of the reader
	if _, kubeconfig, err := run(t.Context(), j); err != nil || kubeconfig != "apiVersion: v1" {
		t.Errorf("a script that reads nothing: %v, kubeconfig %q", err, kubeconfig)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	h := sitetest.New(t)
	lines, kubeconfig, err := run(t.Context(), job(h, `#!/bin/sh
echo "$SITE_ACTION $1 $2" >&2
cat >"$HOME/document"
tr '\0' '\n' </proc/$$/environ >"$HOME/environment"
tr '\0' '\n' </proc/$$/cmdline >"$HOME/arguments"
echo '{"server": "https://10.0.0.1:6443", "kubeconfig": "apiVersion: v1"}'
`))
	if err != nil || kubeconfig != "apiVersion: v1" {
		t.Fatalf("a script that builds: %v, kubeconfig %q", err, kubeconfig)
	}
	if diff := cmp.Diff([]string{"build --name it's $HOME"}, lines); diff != "" {
		t.Errorf("what it said (-want +got):\n%s", diff)
	}
	var document map[string]any
	if err := json.Unmarshal(read(t, h, "document"), &document); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"token": "s3cret"}
	if diff := cmp.Diff(want, document["secrets"]); diff != "" || document["region"] != "east" || document["action"] != "build" {
		t.Errorf("what it was told is %v", document)
	}
	for _, name := range []string{"environment", "arguments"} {
		if strings.Contains(string(read(t, h, name)), "s3cret") {
			t.Errorf("a secret is in the %s of the script", name)
		}
	}
	if _, err := os.Stat(filepath.Join(h.Home, ".k8splugin")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run has left something: %v", err)
	}
}

// TestEveryHost runs a script on a worker and a control plane that accept different
// credentials.
func TestEveryHost(t *testing.T) {
	t.Parallel()
	master, worker := sitetest.New(t), sitetest.New(t)
	j := job(master, `#!/bin/sh
echo "$SITE_ACTION $SITE_HOST $SITE_ROLE" >&2
cat >"$HOME/document"
[ "$SITE_ROLE" = worker ] || echo '{"kubeconfig": "k", "join": {"token": "abcdef.0123456789abcdef"}}'
`)
	j.Secrets.RemoveScript = j.Secrets.Script
	joining := worker.Site()
	joining.Name, joining.Role = "w1", nf.Worker
	j.Site.EveryHost, j.Site.Hosts = true, []nf.SiteHost{joining, j.Site.Hosts[0]}
	j.Secrets.Hosts = map[string]nf.HostCredential{"w1": {PrivateKey: worker.Secrets().PrivateKey}}
	var hidden []string
	var lines []string
	for e, err := range (script.Runner{}).Run(t.Context(), j) {
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range e.Hidden {
			hidden = append(hidden, string(secret))
		}
		if e.Kind == nf.EventLine {
			lines = append(lines, e.Host+": "+e.Message)
		}
	}
	if diff := cmp.Diff([]string{"n1: build n1 control_plane", "w1: build w1 worker"}, lines); diff != "" {
		t.Errorf("a build begins with the control planes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"abcdef.0123456789abcdef"}, hidden); diff != "" {
		t.Errorf("what hosts join with is a secret (-want +got):\n%s", diff)
	}
	for h, want := range map[*sitetest.Host]string{master: `"join":null`, worker: `"join":{"token":"abcdef.0123456789abcdef"}`} {
		if document := string(read(t, h, "document")); !strings.Contains(document, want) {
			t.Errorf("the document of a host lacks %s: %s", want, document)
		}
	}
	j.Action = site.Reset
	lines, _, err := run(t.Context(), j)
	if diff := cmp.Diff([]string{"reset w1 worker", "reset n1 control_plane"}, lines); diff != "" || err != nil {
		t.Errorf("a reset ends with the control planes: %v (-want +got):\n%s", err, diff)
	}
}

func read(t *testing.T, h *sitetest.Host, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Home, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFailures(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		content string
		edit    func(*site.Job)
		kind    nf.Kind
		why     string
		message string
	}{
		"Code":       {"its code is told, and what it said last", "#!/bin/sh\necho broken pump >&2; exit 7", nil, nf.Failed, "script", "it ended with code 7; last output: broken pump"},
		"Nothing":    {"a script that builds says what", "#!/bin/sh\n", nil, nf.Failed, nf.ReasonResult, "it is empty"},
		"NoJSON":     {"and in JSON", "#!/bin/sh\necho done", nil, nf.Failed, nf.ReasonResult, "must be a JSON object"},
		"TooMuch":    {"and not without end", "#!/bin/sh\nhead -c 2000000 /dev/zero", nil, nf.TooLarge, "", "more than"},
		"NoProgram":  {"a script that cannot be run", "#!/no/such/shell\n", nil, nf.Failed, "script", "code 1"},
		"Credential": {"a host that does not let us in", "#!/bin/sh", func(j *site.Job) { j.Secrets.PrivateKey, j.Secrets.Password = nil, nf.Secret("wrong") }, nf.Unreachable, "unauthorized", "rejects user operator"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := job(sitetest.New(t), tc.content)
			if tc.edit != nil {
				tc.edit(&j)
			}
			_, kubeconfig, err := run(t.Context(), j)
			if nf.KindOf(err) != tc.kind || nf.ReasonOf(err) != tc.why || err == nil || !strings.Contains(err.Error(), tc.message) || kubeconfig != "" {
				t.Errorf("%s: the error is %v (%s, %q)", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err))
			}
		})
	}
}

// TestCancel: a script that is cancelled ends, with what it has started.
func TestCancel(t *testing.T) {
	t.Parallel()
	h := sitetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range (script.Runner{}).Run(ctx, job(h, forever)) {
		if e.Message == "begun" {
			cancel()
		}
		if e.Kind == "" && !errors.Is(err, context.Canceled) {
			t.Errorf("a run that is cancelled ends with %v", err)
		}
	}
	wantDead(t, h, "the script", "child", "leader")
	if _, err := os.Stat(filepath.Join(h.Home, ".k8splugin")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run has left something: %v", err)
	}
}

// TestLeft: so does one whose events no longer have a reader.
func TestLeft(t *testing.T) {
	t.Parallel()
	h := sitetest.New(t)
	for e, err := range (script.Runner{}).Run(t.Context(), job(h, forever)) {
		if err != nil {
			t.Error(err)
		}
		if e.Message == "begun" {
			break
		}
	}
	wantDead(t, h, "the script", "child", "leader")
}

// TestAgain: a run whose connection broke continues at the host, and ends when the
// next one begins.
func TestAgain(t *testing.T) {
	t.Parallel()
	h := sitetest.New(t)
	for e, err := range (script.Runner{}).Run(t.Context(), job(h, forever)) {
		if e.Message == "begun" {
			h.Cut()
		}
		if e.Kind == "" && nf.KindOf(err) != nf.Unreachable {
			t.Errorf("a run that is cut off ends with %v", err)
		}
	}
	if !alive(t, h, "leader") {
		t.Fatal("the script has ended with its connection: there is nothing to see")
	}
	_, _, err := run(t.Context(), job(h, "#!/bin/sh\necho '{\"kubeconfig\": \"k\"}'"))
	if err != nil {
		t.Fatal(err)
	}
	wantDead(t, h, "the former run", "child", "leader")
}

const forever = `#!/bin/sh
echo $$ >"$HOME/leader"
sleep 1000 &
echo $! >"$HOME/child"
echo begun >&2
wait
`

func alive(t *testing.T, h *sitetest.Host, name string) bool {
	t.Helper()
	state, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(read(t, h, name))), "stat"))
	return err == nil && !strings.Contains(string(state), ") Z ")
}

func wantDead(t *testing.T, h *sitetest.Host, what string, names ...string) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, name := range names {
		for alive(t, h, name) {
			select {
			case <-deadline:
				t.Fatalf("%s: its %s is still alive", what, name)
			case <-tick.C:
			}
		}
	}
}

func TestParseResult(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, said, want, wrong string
	}{
		"Kubeconfig": {"a kubeconfig is taken as it is", `{"kubeconfig": "k"}`, "k", ""},
		"Token": {"a token becomes one", `{"server": "https://h:6443", "token": "t", "ca": "Y2E="}`,
			`{"apiVersion":"v1","clusters":[{"cluster":{"certificate-authority-data":"Y2E=","server":"https://h:6443"},"name":"site"}],"contexts":[{"context":{"cluster":"site","user":"site"},"name":"site"}],"current-context":"site","kind":"Config","users":[{"name":"site","user":{"token":"t"}}]}`, ""},
		"Password": {"a user and a password do, too", `{"server": "https://h:6443", "username": "u", "password": "p"}`,
			`{"apiVersion":"v1","clusters":[{"cluster":{"server":"https://h:6443"},"name":"site"}],"contexts":[{"context":{"cluster":"site","user":"site"},"name":"site"}],"current-context":"site","kind":"Config","users":[{"name":"site","user":{"password":"p","username":"u"}}]}`, ""},
		"NoServer":  {"a token is somebody's", `{"token": "t"}`, "", "server"},
		"NoTLS":     {"a token is not sent in clear", `{"server": "http://h", "token": "t"}`, "", "server"},
		"Neither":   {"something must be there", `{"server": "https://h"}`, "", "neither"},
		"BadCA":     {"an authority is one", `{"server": "https://h", "token": "t", "ca": "!"}`, "", "ca"},
		"Secret":    {"what is wrong is not quoted", `{"token": {"s3cret": 1}}`, "", "must be a JSON object"},
		"TokenLine": {"a token is a word", `{"server": "https://h", "token": "a b"}`, "", "token"},
	}
	for name, tc := range cases {
		got, err := script.ParseResult([]byte(tc.said))
		if string(got) != tc.want || (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %s: %s, %v", name, tc.reason, []byte(got), err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error tells a secret: %v", name, err)
		}
	}
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"server": "https://h:6443", "token": "t", "ca": "-----BEGIN CERTIFICATE-----"}`))
	f.Add([]byte(`{"kubeconfig": "k"}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		if got, err := script.ParseResult(said); (err == nil) != (len(got) > 0) {
			t.Errorf("%q means %d bytes and %v", said, len(got), err)
		}
	})
}
