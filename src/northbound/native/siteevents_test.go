package native_test

import (
	"bufio"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

func TestSiteEvents(t *testing.T) {
	t.Parallel()
	s := newSiteStandIn()
	site := serve(t, newStandIn(), func(c *native.Config) { c.Sites, c.SiteOperations = s, s })
	got := site.ask(t, "GET /v1/sites/edge/operations/op-1/events", "")
	var kinds []string
	for line := range strings.Lines(string(got.body)) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	if want := []string{"operation", "log", "operation"}; !slices.Equal(kinds, want) || got.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("the stream has %v:\n%s", kinds, got.body)
	}
	if text := string(got.body); !strings.Contains(text, `data: {"number":1,"time":"2026-11-20T12:00:02Z","kind":"changed","step":"build cluster","task":"init","host":"n1"}`) || strings.Contains(text, "s3cret") {
		t.Errorf("the stream says\n%s", text)
	}
}

// TestSiteEventsQuiet: a stream in which nothing happens shows signs of life, and
// repeats nothing.
func TestSiteEventsQuiet(t *testing.T) {
	t.Parallel()
	s := newSiteStandIn()
	s.updates = s.updates[:2]
	site := serve(t, newStandIn(), func(c *native.Config) { c.Sites, c.SiteOperations, c.Heartbeat = s, s, time.Millisecond })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.url+"/v1/sites/edge/operations/op-1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var lines string
	for said := bufio.NewScanner(res.Body); strings.Count(lines, ": still here") < 3 && said.Scan(); {
		lines += said.Text() + "\n"
	}
	if n := strings.Count(lines, "event: "); n != 2 || !strings.Contains(lines, ": still here") {
		t.Errorf("a quiet stream has %d events:\n%s", n, lines)
	}
}
