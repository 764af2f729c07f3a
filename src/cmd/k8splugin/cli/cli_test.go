package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var update = flag.Bool("update", false, "write the golden files")

// reply is one answer of the test's server.
type reply struct {
	status   int // 200 when 0
	media    string
	location string
	body     string
	then     *reply // to the same request the next time; nil: the same
}

// replies is what a server answers, by "METHOD path?query".
type replies map[string]reply

// server is a real HTTP server that gives fixed answers and keeps what it was
// asked.
type server struct {
	*httptest.Server

	replies replies
	check   func(r *http.Request, body []byte)
	mu      sync.Mutex
	asked   strings.Builder
}

func serve(t *testing.T, c contract, r replies) *server {
	t.Helper()
	s := &server{replies: r, check: func(r *http.Request, body []byte) { c.check(t, r, body) }}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.RequestURI()
	a, ok := s.keep(r, key)
	if !ok {
		a = problemReply(404, `{"title":"Not Found","detail":"cannot get it: it does not exist","kind":"not-found"}`)
	}
	if a.media == "" {
		a.media = "application/json"
	}
	w.Header().Set("Content-Type", a.media)
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	w.WriteHeader(max(a.status, 200))
	_, _ = io.WriteString(w, a.body)
}

func (s *server) keep(r *http.Request, key string) (reply, bool) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.replies[key]
	if a.then != nil {
		s.replies[key] = *a.then
	}
	s.check(r, body)
	fmt.Fprint(&s.asked, key)
	for _, name := range []string{"Content-Type", "Prefer"} {
		if v := r.Header.Get(name); v != "" {
			fmt.Fprintf(&s.asked, " [%s: %s]", name, v)
		}
	}
	if bytes.HasPrefix(body, []byte("PK")) {
		body = []byte("(a zip)")
	}
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		body = []byte("(a tar.gz)")
	}
	if len(body) > 0 {
		fmt.Fprintf(&s.asked, " %s", body)
	}
	s.asked.WriteString("\n")
	return a, ok
}

func problemReply(status int, body string) reply {
	return reply{status: status, media: "application/problem+json", body: body}
}

// console is the process that a test runs commands in.
type console struct {
	stdin    string
	terminal bool
	person   bool // a person uses the terminal
	env      map[string]string
	lint     func([]byte) (string, []string, error)
}

// result is what came of a command line.
type result struct {
	stdout, stderr string
	code           int
}

// check is lint, and says with what a package is rendered.
func (c console) check(_ context.Context, archive []byte, in nf.Inputs) ([]string, error) {
	if c.lint == nil {
		c.lint = func([]byte) (string, []string, error) { return "", nil, nil }
	}
	_, warnings, err := c.lint(archive)
	if len(in.Parameters) > 0 || len(in.Overrides) > 0 {
		warnings = append(warnings, fmt.Sprintf("rendered with %s and %s", jsonOf(in.Parameters), jsonOf(in.Overrides)))
	}
	return warnings, err
}

func (c console) run(ctx context.Context, url string, args ...string) result {
	var stdout, stderr bytes.Buffer
	s := newSession(Env{
		Stdin: strings.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr,
		InIsTerminal: c.person, IsTerminal: c.terminal, ErrIsTerminal: c.terminal || c.person,
		Getenv: func(key string) string {
			if key == "K8SPLUGIN_SERVER" {
				return url
			}
			return c.env[key]
		},
		Lint: c.lint, Check: c.check, Render: rendered, Translate: translated, Version: "v0.2.0",
		Now: func() time.Time { return time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC) },
	})
	s.connection.retries, s.watcher.redraw = []time.Duration{0, 0}, time.Hour
	s.interval = time.Millisecond
	if s.lint == nil {
		s.lint = func([]byte) (string, []string, error) { return "", nil, nil }
	}
	root := &cobra.Command{Use: "k8splugin", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.AddCommand(commands(s)...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	Report(&stderr, err)
	return result{stdout.String(), stderr.String(), ExitCode(err)}
}

func stream(operations ...string) reply {
	var b strings.Builder
	for i, op := range operations {
		fmt.Fprintf(&b, "event: operation\nid: %d\ndata: %s\n\n", i+1, op)
	}
	return reply{media: "text/event-stream", body: b.String()}
}

// commandCase is one command line and the server that it meets. PKG and KUBE in
// the arguments stand for the folders of a package and of a kubeconfig.
type commandCase struct {
	reason  string
	args    []string
	console console
	replies replies
	hidden  string // a folder of the arguments, which is FILES in the golden file
}

// play holds each case's outcome (what is printed, the requests that were
// made, the exit code) equal to its golden file.
func play(t *testing.T, cases map[string]commandCase) {
	t.Helper()
	c := readContract(t)
	pkg := folder(t, map[string]string{"metadata.yaml": "resources: []\n"})
	kube := folder(t, map[string]string{
		"config": twoContexts, "oof.yaml": "- {site: east, cost: 3}\n- {site: west}\n", "one.yaml": "{site: north}", "network.yaml": "oam: {ip_address: 10.10.1.7}\n", "text.yaml": "east",
		"token": "a-token\n", "empty": "\n",
	})
	chartArchive(t, kube)
	for name, sc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, c, sc.replies)
			args := make([]string, len(sc.args))
			for i, arg := range sc.args {
				args[i] = strings.NewReplacer("PKG", pkg, "KUBE", kube).Replace(arg)
			}
			r := sc.console.run(t.Context(), srv.URL, args...)
			got := transcript(sc.args, r, srv.asked.String())
			if sc.hidden != "" {
				got = strings.ReplaceAll(got, sc.hidden, "FILES")
			}
			golden(t, name, sc.reason, strings.NewReplacer(srv.URL, "SERVER", pkg, "PKG", kube, "KUBE").Replace(got))
		})
	}
}

// one is a server that answers one request.
func one(path, body string) replies { return replies{"GET " + path: {body: body}} }

// transcript is a whole session, to be read.
func transcript(args []string, r result, asked string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "$ k8splugin %s\n", strings.Join(args, " "))
	for _, part := range []struct{ name, text string }{{"stdout", r.stdout}, {"stderr", r.stderr}, {"requests", asked}} {
		if part.text != "" {
			fmt.Fprintf(&b, "-- %s --\n%s", part.name, part.text)
		}
	}
	fmt.Fprintf(&b, "-- exit code %d --\n", r.code)
	return strings.NewReplacer("\x1b", "<ESC>", "\r", "<CR>").Replace(b.String())
}

func golden(t *testing.T, name, reason, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}
