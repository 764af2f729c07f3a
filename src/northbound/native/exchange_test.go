package native_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

func logger(w *syncBuffer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

const (
	asJSON  = "Content-Type: application/json"
	asPatch = "Content-Type: application/merge-patch+json"
	asZip   = "Content-Type: application/zip"
)

// exchange is one request with its answer.
type exchange struct {
	reason  string
	arrange func(*standIn)
	request string // "GET /v1/packages"
	header  []string
	body    string
	status  int
	want    string   // JSON in the language of transcripts; empty: an empty body
	headers []string // "Location: /v1/packages/x"
	asked   any      // what the stand-in was asked for, when not nil
}

func (e exchange) run(t *testing.T, s *standIn, site site) {
	t.Helper()
	if e.arrange != nil {
		e.arrange(s)
	}
	got := site.ask(t, e.request, e.body, e.header...)
	if got.StatusCode != e.status {
		t.Fatalf("%s: %s answered %s, want %d\n%s", e.reason, e.request, got.Status, e.status, got.body)
	}
	if err := matchBody(e.want, got.body); err != nil {
		t.Errorf("%s: %s: %v\n%s", e.reason, e.request, err, got.body)
	}
	for _, line := range e.headers {
		name, want, _ := strings.Cut(line, ": ")
		if have := got.Header.Values(name); strings.Join(have, "") != want && !slices.Contains(have, want) {
			t.Errorf("%s: %s: %s is %q, want %q", e.reason, e.request, name, have, want)
		}
	}
	if diff := cmp.Diff(e.asked, s.asked, cmp.AllowUnexported(upgrade{}, upload{}, repair{}, configuration{}, fetch{})); e.asked != nil && diff != "" {
		t.Errorf("%s: %s asked for something else (-want +got):\n%s", e.reason, e.request, diff)
	}
	if strings.Contains(string(got.body), "s3cret") {
		t.Errorf("%s: %s: the answer tells a secret\n%s", e.reason, e.request, got.body)
	}
}

func matchBody(want string, got []byte) error {
	if want == "" {
		if len(got) > 0 {
			return errors.New("the body is not empty")
		}
		return nil
	}
	return northboundtest.Match(want, got)
}

// runAll runs the exchanges against one server, each with a fresh stand-in.
func runAll(t *testing.T, cases map[string]exchange) {
	t.Helper()
	s := newStandIn()
	site := serve(t, s)
	for name, e := range cases {
		t.Run(name, func(t *testing.T) {
			s.reset()
			e.run(t, s, site)
		})
	}
	if strings.Contains(site.log.String(), "s3cret") {
		t.Errorf("the log tells a secret\n%s", site.log)
	}
}

// problem is the body of a refusal of the kind.
func problem(kind string, more ...string) string {
	fields := append([]string{`"kind": "` + kind + `", "...": ""`}, more...)
	return "{" + strings.Join(fields, ", ") + "}"
}

func failing(method string, err error) func(*standIn) {
	return func(s *standIn) { s.fail[method] = err }
}

var errDisk = errors.New("the disk is gone")
