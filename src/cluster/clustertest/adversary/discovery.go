package adversary

import (
	"fmt"
	"net/http"
	"strings"
)

// plurals are the served kinds, by plural name.
var plurals = map[string]string{
	"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace", "pods": "Pod", "events": "Event", "deployments": "Deployment",
	"replicasets": "ReplicaSet", "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
}

// discovery answers discovery requests.
func (s *Server) discovery(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.behavior == Discovery && r.URL.Path == "/apis":
		s.endlessKinds(w, r)
	case s.behavior == Groups:
		s.groups(w, r, 100_000)
	case strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") && strings.Count(r.URL.Path, "/") == 1:
		s.kinds(w, r)
	default: // Probe uses unaggregated discovery
		s.groups(w, r, 1)
	}
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// kinds sends aggregated discovery, as API servers have done since 1.26.
func (s *Server) kinds(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", aggregated)
	groups := []string{group("", "configmaps", "secrets", "namespaces", "pods", "events")}
	if r.URL.Path == "/apis" {
		groups = []string{group("apps", "deployments", "replicasets"), group("admissionregistration.k8s.io", "mutatingwebhookconfigurations")}
	}
	s.say(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[`+strings.Join(groups, ",")+`]}`)
}

func group(name string, plurals ...string) string {
	resources := make([]string, len(plurals))
	for i, plural := range plurals {
		resources[i] = resource(name, plural)
	}
	return `{"metadata":{"name":"` + name + `"},"versions":[{"version":"v1","freshness":"Current","resources":[` + strings.Join(resources, ",") + `]}]}`
}

func resource(group, plural string) string {
	scope := "Namespaced"
	if plural == "namespaces" || plural == "mutatingwebhookconfigurations" {
		scope = "Cluster"
	}
	return fmt.Sprintf(`{"resource":"%s","responseKind":{"group":"%s","version":"v1","kind":"%s"},"scope":"%s","singularResource":"x",`+
		`"verbs":["create","delete","get","list","patch","update","watch"]}`, plural, group, plurals[plural], scope)
}

// endlessKinds sends an endless list of kinds.
func (s *Server) endlessKinds(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", aggregated)
	s.say(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"apps"},`+
		`"versions":[{"version":"v1","freshness":"Current","resources":[`)
	for i := 0; r.Context().Err() == nil && s.say(w, strings.Replace(resource("apps", "deployments"), "deployments", fmt.Sprintf("deployments%d", i), 1)+","); i++ {
	}
}

// groups sends a list of n groups that the client must read one by one.
func (s *Server) groups(w http.ResponseWriter, r *http.Request, n int) {
	switch r.URL.Path {
	case "/api":
		s.say(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		var groups []string
		for i := range n {
			groups = append(groups, fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}],"preferredVersion":{"groupVersion":"g%d/v1","version":"v1"}}`, i, i, i))
		}
		s.say(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+strings.Join(groups, ",")+`]}`)
	default:
		version := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
		s.say(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"`+version+`","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list","watch","patch"]}]}`)
	}
}
