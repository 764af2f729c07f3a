package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestLastMarker has a list of 250 items, whose markers are their numbers.
func TestLastMarker(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"": `{"next":"100"}`, "100": `{"next":"200"}`, "200": `{}`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(pages[r.URL.Query().Get("marker")]))
	}))
	t.Cleanup(server.Close)
	s := service{url: server.URL, client: server.Client()}
	for from, want := range map[string]string{"": "100", "100": "100", "200": "200"} {
		if got, err := s.lastMarker(t.Context(), list{path: "/list?filter=x"}, from, 100); err != nil || got != want {
			t.Errorf("from %q, the last full page begins after %q, %v; want %q", from, got, err, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	of := []time.Duration{5, 1, 4, 2, 3}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(of, share); got != want {
			t.Errorf("the quantile %v is %d, want %d", share, got, want)
		}
	}
}

func TestMiddle(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		of     []float64
		want   float64
	}{
		"None":  {"nothing was measured", nil, 0},
		"One":   {"one value is all", []float64{3}, 3},
		"Few":   {"of up to three values, all count", []float64{2, 1, 6}, 3},
		"Five":  {"the smallest and the largest do not", []float64{100, 2, 3, 4, -100}, 3},
		"Eight": {"of eight, neither do two at each end", []float64{0, 0, 1, 2, 3, 4, 90, 90}, 2.5},
	}
	for name, tc := range cases {
		if got := middle(tc.of); got != tc.want {
			t.Errorf("%s: %s: got %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	var n numbers
	if err := n.Set("10,100"); err != nil || n.String() != "10,100" {
		t.Errorf("the flag is %q, %v; want 10,100", n.String(), err)
	}
	if err := n.Set("10,x"); err == nil {
		t.Error("a text is accepted as a number")
	}
}
