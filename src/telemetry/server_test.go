package telemetry_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/telemetry/telemetrytest"
)

// TestMiddlewareIsTransparent checks that a handler can do with its connection
// what it could do without: streams are flushed, slow clients cut off.
func TestMiddlewareIsTransparent(t *testing.T) {
	collector := telemetrytest.New(t)
	tracing := traceTo(t, collector)
	flushed := make(chan struct{})
	server := httptest.NewServer(tracing.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
		control := http.NewResponseController(w)
		_, err := io.WriteString(w, "first")
		err = errors.Join(err, control.Flush(), control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
		if err != nil {
			t.Errorf("the connection is out of reach: %v", err)
		}
		<-flushed
	})))
	defer server.Close()
	answer := get(t, server.URL+"/stream")
	defer answer.Body.Close()
	first := make([]byte, len("first"))
	if _, err := io.ReadFull(answer.Body, first); err != nil {
		t.Errorf("the stream does not begin before it ends: %v", err)
	}
	close(flushed)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/abort", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
		t.Errorf("an answer that was cut off came as %s", answer.Status)
	}
}

func get(t *testing.T, address string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
