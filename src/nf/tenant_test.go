package nf_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestCheckTenants(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		tenant nf.Tenant
		want   string // the field; empty: nothing is wrong
	}{
		"Everything":      {"what a grant may say", nf.Tenant{Project: "blue", Namespaces: []string{"a", "mon-*", "*"}, ClusterKinds: []string{"Namespace", "ClusterRole.rbac.authorization.k8s.io", "*.example.org", "*"}, ServiceAccount: "tenants/blue.deployer"}, ""},
		"Every project":   {"a grant to all", nf.Tenant{Project: nf.AnyProject}, ""},
		"No project":      {"a grant to nobody", nf.Tenant{}, "tenants[0].project"},
		"Project pattern": {"projects have no patterns", nf.Tenant{Project: "b*"}, "tenants[0].project"},
		"Namespace":       {"no namespace is called so", nf.Tenant{Project: "blue", Namespaces: []string{"a", "Mon"}}, "tenants[0].namespaces[1]"},
		"Class":           {"only * stands for others", nf.Tenant{Project: "blue", Namespaces: []string{"[a-z]"}}, "tenants[0].namespaces[0]"},
		"Kind":            {"a resource is no kind", nf.Tenant{Project: "blue", ClusterKinds: []string{"apps/v1"}}, "tenants[0].cluster_kinds[0]"},
		"Service account": {"a service account has a namespace", nf.Tenant{Project: "blue", ServiceAccount: "deployer"}, "tenants[0].service_account"},
		"Nameless":        {"and a name", nf.Tenant{Project: "blue", ServiceAccount: "tenants/"}, "tenants[0].service_account"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := nf.CheckTenants("tenants", []nf.Tenant{tc.tenant})
			if tc.want == "" && got != nil || tc.want != "" && (len(got) != 1 || got[0].Field != tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, got, tc.want)
			}
		})
	}
	if got := nf.CheckTenants("tenants", []nf.Tenant{{Project: "blue"}, {Project: "blue"}}); len(got) != 1 || got[0].Field != "tenants[1].project" {
		t.Errorf("a project that has two entries: %v", got)
	}
}

func TestTenancy(t *testing.T) {
	t.Parallel()
	region := nf.Region{ID: "east", Tenants: []nf.Tenant{
		{Project: nf.AnyProject, Namespaces: []string{"shared"}, ServiceAccount: "k/anybody"},
		{Project: "blue", Namespaces: []string{"blue-*"}, ClusterKinds: []string{"ClusterRole.rbac.authorization.k8s.io", "Namespace"}, ServiceAccount: "k/blue"},
	}}
	blue, red, whole := region.Tenancy("blue", true), region.Tenancy("red", true), region.Tenancy("red", false)
	if diff := cmp.Diff([]string{"k/blue", "k/anybody"}, []string{blue.ServiceAccount, red.ServiceAccount}); diff != "" {
		t.Errorf("service accounts: a project's own comes first (-want +got):\n%s", diff)
	}
	foreign := &nf.Namespace{}
	may := map[string][2]bool{
		"a namespace that is not there":         {blue.MayUse("new", nil), true},
		"one that the service made for it":      {red.MayUse("r", &nf.Namespace{Made: true, Project: "red"}), true},
		"one that it made for another":          {blue.MayUse("r", &nf.Namespace{Made: true, Project: "red"}), false},
		"one that says the project, not made":   {red.MayUse("r", &nf.Namespace{Project: "red"}), false},
		"one of all":                            {red.MayUse("shared", foreign), true},
		"one of a pattern":                      {blue.MayUse("blue-1", foreign), true},
		"one of another's pattern":              {red.MayUse("blue-1", foreign), false},
		"any, when projects are not kept apart": {whole.MayUse("blue-1", foreign), true},
		"a kind":                                {blue.MayHold("rbac.authorization.k8s.io", "ClusterRole"), true},
		"a kind of another group":               {blue.MayHold("example.org", "ClusterRole"), false},
		"a kind that begins alike":              {blue.MayHold("rbac.authorization.k8s.io", "ClusterRoleBinding"), false},
		"a kind of the core group":              {blue.MayHold("", "Namespace"), true},
		"another's kind":                        {red.MayHold("", "Namespace"), false},
		"any kind, not kept apart":              {whole.MayHold("", "Node"), true},
	}
	for what, got := range may {
		if got[0] != got[1] {
			t.Errorf("may use %s: %t, want %t", what, got[0], got[1])
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	bounds := nf.Bounds{Namespace: "own", Further: []string{"more"}, Tenancy: nf.Region{ID: "east"}.Tenancy("blue", true)}
	cases := map[string]struct {
		reason  string
		ref     nf.Ref
		outside bool
		denied  bool
	}{
		"Own":               {reason: "an object of its own namespace", ref: nf.Ref{Kind: "Pod", Namespace: "own", Name: "a"}},
		"Further":           {reason: "one of a further namespace", ref: nf.Ref{Kind: "Pod", Namespace: "more", Name: "a"}},
		"Other":             {reason: "one of a namespace that it does not open", ref: nf.Ref{Kind: "Pod", Namespace: "other", Name: "a"}, outside: true},
		"Cluster-scoped":    {reason: "a cluster-scoped object", ref: nf.Ref{Kind: "ClusterRole", Group: "rbac.authorization.k8s.io", Name: "own"}, denied: true},
		"Its namespace":     {reason: "the namespaces that it opens are its to have", ref: nf.Ref{Kind: "Namespace", Name: "more"}},
		"Another namespace": {reason: "others are not", ref: nf.Ref{Kind: "Namespace", Name: "other"}, outside: true, denied: true},
		"A like kind":       {reason: "a kind of that name in another group is no namespace", ref: nf.Ref{Kind: "Namespace", Group: "example.org", Name: "own"}, denied: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if v := bounds.Outside(tc.ref); (v != nil) != tc.outside {
				t.Errorf("%s: outside: %v", tc.reason, v)
			}
			v := bounds.Denied(tc.ref)
			if (v != nil) != tc.denied {
				t.Errorf("%s: denied: %v", tc.reason, v)
			}
			if rule := "cluster_kinds: ["; v != nil && !strings.Contains(v.Error(), rule) {
				t.Errorf("%s: %v, want the rule that would allow it", tc.reason, v)
			}
		})
	}
}
