package native

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestPreference(t *testing.T) {
	t.Parallel()
	const longest = time.Minute
	cases := map[string]struct {
		reason string
		header []string
		want   preference
	}{
		"None":        {"as long as may be", nil, preference{longest, ""}},
		"Async":       {"not at all", []string{"respond-async"}, preference{0, "respond-async"}},
		"Case":        {"names have no case", []string{"Respond-Async"}, preference{0, "respond-async"}},
		"Wait":        {"so long", []string{"wait=5"}, preference{5 * time.Second, "wait=5"}},
		"Quoted":      {"a value may be quoted", []string{`wait = "5"; x`}, preference{5 * time.Second, "wait=5"}},
		"Long":        {"but no longer than may be", []string{"wait=3600"}, preference{longest, "wait=3600"}},
		"Both":        {"so long, before it is asynchronous", []string{"respond-async, wait=5"}, preference{5 * time.Second, "respond-async, wait=5"}},
		"BothOrder":   {"in any order", []string{"wait=5", "respond-async"}, preference{5 * time.Second, "wait=5, respond-async"}},
		"BothLongest": {"also when it is the longest", []string{"wait=60", "respond-async"}, preference{longest, "wait=60, respond-async"}},
		"Unknown":     {"what is not understood is ignored", []string{"return=minimal, wait=soon, wait, ,=;"}, preference{longest, ""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header["Prefer"] = c.header
			if got := preferenceOf(r, longest); got != c.want {
				t.Errorf("%s: %q is %+v, want %+v", c.reason, c.header, got, c.want)
			}
		})
	}
}

func FuzzPreference(f *testing.F) {
	for _, seed := range []string{"respond-async", "wait=10", `wait="1", respond-async`, "wait=99999999999999999999", "wait=-1", ";=,\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Prefer"] = []string{header}
		if p := preferenceOf(r, time.Minute); p.wait < 0 || p.wait > time.Minute {
			t.Errorf("%q waits %s", header, p.wait)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"10m", "600", "0", "-1s", "24h", "25h", "1h30m", "1e9", "99999999999", "∞"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := duration(text)
		if err == nil && (d <= 0 || d > nf.MaxTimeout) {
			t.Errorf("%q is a timeout of %s", text, d)
		}
		if err != nil && nf.KindOf(err) != nf.Invalid {
			t.Errorf("%q is %v", text, err)
		}
	})
}
