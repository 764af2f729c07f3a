package nf

import (
	"cmp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestAssess(t *testing.T) {
	web := Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "edge", Name: "web"}
	all := func(statuses ...Status) []Health {
		var out []Health
		for _, s := range statuses {
			out = append(out, Health{Ref: web, Status: s, Message: "its own words"})
		}
		return out
	}
	cases := map[string]struct {
		reason  string
		state   InstanceState // empty: Ready
		objects []Health
		want    InstanceHealth
	}{
		"healthy":   {"all is as it should be", "", all(Current, Current), InstanceHealth{State: Healthy}},
		"nothing":   {"a package of definitions or hooks alone is well when it is ready", "", nil, InstanceHealth{Healthy, "it has no objects that show its health"}},
		"not yet":   {"an instance that is being made has no objects yet", Instantiating, nil, InstanceHealth{HealthUnknown, "it has no objects"}},
		"not ready": {"one is enough", "", all(Current, InProgress), InstanceHealth{Unhealthy, "Deployment edge/web is not ready"}},
		"several":   {"the first is named", "", all(Absent, Current, StatusFailed), InstanceHealth{Unhealthy, "Deployment edge/web is missing, and 1 more of 3 objects are not healthy"}},
		"both":      {"what is known to be wrong outweighs what is not known", "", all(Unknown, StatusDeleting), InstanceHealth{Unhealthy, "Deployment edge/web is being deleted"}},
		"unknown":   {"what is not known is not healthy", "", all(Current, Unknown), InstanceHealth{HealthUnknown, "Deployment edge/web cannot be read"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := gocmp.Diff(tc.want, Assess(cmp.Or(tc.state, Ready), tc.objects)); d != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	job := Item{Ref: Ref{Group: "batch", Version: "v1", Kind: "Job", Name: "once"}, Passing: true}
	for status, want := range map[Status]Status{Absent: Current, StatusDeleting: Current, StatusFailed: StatusFailed} {
		if got := job.Judge(Health{Ref: job.Ref, Status: status}).Status; got != want {
			t.Errorf("a Job that goes by itself and is %s is %s, want %s", status, got, want)
		}
	}
	remaining := job
	remaining.Passing = false
	if got := remaining.Judge(Health{Status: Absent}).Status; got != Absent {
		t.Errorf("another object that is gone is %s", got)
	}
}
