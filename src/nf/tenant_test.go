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
		reason  string
		project string
		tenant  nf.Tenant
		want    string // the field; empty: nothing is wrong
	}{
		"Everything":      {"what a grant may say", "blue", nf.Tenant{Namespaces: []string{"a", "mon-*", "*"}, ClusterKinds: []string{"Namespace", "ClusterRole.rbac.authorization.k8s.io", "*.example.org", "*"}, ServiceAccount: "tenants/blue.deployer"}, ""},
		"Every project":   {"a grant to all", nf.AnyProject, nf.Tenant{}, ""},
		"No project":      {"a grant without a project", "", nf.Tenant{}, "tenants."},
		"Project pattern": {"projects have no patterns", "b*", nf.Tenant{}, "tenants.b*"},
		"Namespace":       {"no namespace is called so", "blue", nf.Tenant{Namespaces: []string{"a", "Mon"}}, "tenants.blue.namespaces[1]"},
		"Class":           {"only * stands for others", "blue", nf.Tenant{Namespaces: []string{"[a-z]"}}, "tenants.blue.namespaces[0]"},
		"Kind":            {"a resource is no kind", "blue", nf.Tenant{ClusterKinds: []string{"apps/v1"}}, "tenants.blue.cluster_kinds[0]"},
		"Service account": {"a service account has a namespace", "blue", nf.Tenant{ServiceAccount: "deployer"}, "tenants.blue.service_account"},
		"Nameless":        {"and a name", "blue", nf.Tenant{ServiceAccount: "tenants/"}, "tenants.blue.service_account"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := nf.CheckTenants("tenants", map[string]nf.Tenant{tc.project: tc.tenant})
			if tc.want == "" && got != nil || tc.want != "" && (len(got) != 1 || got[0].Field != tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestTenancy(t *testing.T) {
	t.Parallel()
	region := nf.Region{ID: "east", Tenants: map[string]nf.Tenant{
		nf.AnyProject: {Namespaces: []string{"shared"}, ServiceAccount: "k/anybody"},
		"blue":        {Namespaces: []string{"blue-*"}, ClusterKinds: []string{"ClusterRole.rbac.authorization.k8s.io", "Namespace"}, ServiceAccount: "k/blue"},
	}}
	blue, red, whole := region.Tenancy("blue", true), region.Tenancy("red", true), region.Tenancy("red", false)
	if diff := cmp.Diff([]string{"k/blue", "k/anybody", ""}, []string{blue.ServiceAccount, red.ServiceAccount, whole.ServiceAccount}); diff != "" {
		t.Errorf("service accounts: a project's own comes first (-want +got):\n%s", diff)
	}
	foreign := &nf.Namespace{}
	may := map[string][2]bool{
		"a namespace that is not there":         {blue.MayUse("new", nil), true},
		"one that the service made for it":      {red.MayUse("r", &nf.Namespace{Created: true, Project: "red"}), true},
		"one that it made for another":          {blue.MayUse("r", &nf.Namespace{Created: true, Project: "red"}), false},
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
