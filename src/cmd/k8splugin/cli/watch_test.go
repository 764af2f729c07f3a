package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A stream that breaks, even in the middle of an event, is opened again, and
// an event that was reported is not reported again.
func TestWatchGoesOnAfterABreak(t *testing.T) {
	var opened atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if opened.Add(1) == 1 {
			_, _ = io.WriteString(w, stream(op1, op2).body+"event: operation\ndata: {\"operation_id\"")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, stream(op2, op3, opSucceeded).body)
	}))
	defer srv.Close()
	r := console{}.run(t.Context(), srv.URL, "operation", "watch", "0192f3a5c7d1-a7c1")
	want := result{stderr: `instantiate k3x9vq2m: queued
instantiate k3x9vq2m: running
namespace: done after 0.0s
apply deployment: 0/2
apply deployment: 1/2
apply deployment: done after 4.0s
instantiate k3x9vq2m: succeeded after 4.0s
warning: variable $x stays as it is
`}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An interrupt ends the waiting; the operation is named, and nothing asks it to
// stop.
func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case create:
			w.Header().Set("Location", operation1)
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, acceptedJSON)
		case eventsOf:
			_, _ = io.WriteString(w, stream(op1).body)
			w.(http.Flusher).Flush()
			interrupt()
			<-r.Context().Done()
		default:
			t.Errorf("unexpected %s %s", r.Method, r.URL)
		}
	}))
	defer srv.Close()
	r := console{}.run(ctx, srv.URL, "instance", "create", "--region", "east", "--package", "firewall", "--wait")
	if r.code != exitInterrupted {
		t.Errorf("got exit code %d, want %d", r.code, exitInterrupted)
	}
	if want := "operation 0192f3a5c7d1-a7c1 continues"; !strings.Contains(r.stderr, want) {
		t.Errorf("%q does not say %q", r.stderr, want)
	}
}

func TestUnreachableServer(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for _, args := range [][]string{{"region", "list"}, {"operation", "watch", "0192"}} {
		r := console{}.run(t.Context(), url, args...)
		if r.code != exitNoServer || !strings.Contains(r.stderr, "cannot reach the server at "+url) {
			t.Errorf("%v: got exit code %d and %q", args, r.code, r.stderr)
		}
	}
}

// On a terminal that is too low, the operation and its last steps are shown.
func TestBlockFitsTheTerminal(t *testing.T) {
	var steps []string
	for i := range 40 {
		steps = append(steps, fmt.Sprintf(`{"name":"step-%d","started_at":"2026-11-20T09:02:00Z"}`, i))
	}
	op := opStart + `"state":"succeeded","finished_at":"2026-11-20T09:02:04Z","steps":[` + strings.Join(steps, ",") + `]}`
	srv := serve(t, readContract(t), replies{eventsOf: stream(op)})
	r := console{terminal: true}.run(t.Context(), srv.URL, "operation", "watch", "0192f3a5c7d1-a7c1")
	if got := strings.Count(r.stderr, "\n"); got != 22 {
		t.Errorf("got %d lines on a terminal of 24", got)
	}
	for _, want := range []string{"instantiate k3x9vq2m: succeeded", "step-39"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("%q is missing from:\n%s", want, r.stderr)
		}
	}
}
