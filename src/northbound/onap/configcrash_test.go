package onap_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// change is a request that changes a configuration.
type change struct {
	name, request, body string
	status              int
}

// configLife is what is done to a configuration, one change after another.
func configLife() []change {
	const one, body = configs + "/c", `{"config-name": "c", "template-name": "ssh", "description": "d", "values": {"n": %d}}`
	return []change{
		{"create", "POST " + configs, fmt.Sprintf(body, 1), 201},
		{"update", "PUT " + one, fmt.Sprintf(body, 2), 201},
		{"tag", "POST " + one + "/tagit", `{"tag-name": "golden"}`, 200},
		{"delete", "POST " + one + "/delete", "", 200},
		{"tag the deletion", "POST " + one + "/tagit", `{"tag-name": "empty"}`, 200},
		{"delete again", "POST " + one + "/delete", "", 200},
		{"roll back", "POST " + one + "/rollback", `{"config-version": "1"}`, 200},
		{"roll back to the deletion", "POST " + one + "/rollback", `{"config-tag": "empty"}`, 200},
		{"update the deleted", "PUT " + one, fmt.Sprintf(body, 9), 201},
		{"delete a third time", "POST " + one + "/delete", "", 200},
		{"create the deleted", "POST " + configs, fmt.Sprintf(body, 11), 201},
		{"remove", "DELETE " + one, "", 202},
		{"create anew", "POST " + configs, fmt.Sprintf(body, 1), 201},
		{"delete anew", "POST " + one + "/delete", "", 200},
		{"remove the deleted", "DELETE " + one + "?deleteConfigOnly=true", "", 202},
	}
}

// view is everything that clients can read of the configuration.
func (w *world) view(t *testing.T) string {
	t.Helper()
	out := ""
	for _, path := range []string{"", "/c", "/c/version", "/c/tag", "/c/tag/empty", "/c/tag/golden"} {
		got := w.ask(t, "GET "+configs+path, "")
		out += fmt.Sprintf("%s: %d %s", path, got.status, got.body)
	}
	return out
}

// TestConfigsSurviveEveryDeath kills the process at each write of each change of a
// configuration. The next process shows the configuration as it was before the
// change or as it is after it, and the change can be repeated.
func TestConfigsSurviveEveryDeath(t *testing.T) {
	t.Parallel()
	history := configLife()
	for i, step := range history {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprint(step.name, " ", done), func(t *testing.T) {
				t.Parallel()
				deaths := 0
				for n := 1; ; n++ {
					raw := memory.New()
					w := newWorldOn(t, false, raw)
					w.furnish(t)
					w.create(t)
					for _, earlier := range history[:i] {
						w.make(t, earlier)
					}
					before := w.view(t)
					crashing := storetest.NewCrashingStore(raw)
					crashing.CrashAt(n, done)
					w.start(t, false, crashing)
					got := w.ask(t, step.request, step.body)
					select {
					case <-crashing.Crashed():
						deaths++
					default: // all writes are done
						if got.status != step.status || deaths == 0 {
							t.Errorf("%d deaths, and then %d: %s", deaths, got.status, got.body)
						}
						return
					}
					w.start(t, false, raw)
					w.resumes(t, step, before, fmt.Sprintf("dead at write %d", n))
				}
			})
		}
	}
}

// make makes a change that nothing disturbs.
func (w *world) make(t *testing.T, c change) {
	t.Helper()
	if got := w.ask(t, c.request, c.body); got.status != c.status {
		t.Fatalf("%s: %d %s", c.name, got.status, got.body)
	}
}

// resumes compares what there is after a death with what an undisturbed life has
// before and after the change, and makes the change if it was not made.
func (w *world) resumes(t *testing.T, step change, before, when string) {
	t.Helper()
	undisturbed := newWorld(t, false)
	undisturbed.create(t)
	for _, c := range configLife() {
		undisturbed.make(t, c)
		if c.name == step.name {
			break
		}
	}
	after, now := undisturbed.view(t), w.view(t)
	if now == before && before != after {
		w.make(t, step)
		now = w.view(t)
	}
	if diff := cmp.Diff(after, now); diff != "" {
		t.Errorf("%s: before it was\n%s\n(-want after +got):\n%s", when, before, diff)
	}
}
