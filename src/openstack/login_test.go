package openstack_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/openstack"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/openstack"
)

// TestLogin logs in at a cloud, as the registration of a region does.
func TestLogin(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		edit   func(*nf.OpenStack)
		status int // of the response to the login; 0: that of the cloud
		kind   nf.Kind
		why    string
	}{
		"Password": {reason: "the credential is wrong, and the caller is allowed to register it", edit: func(o *nf.OpenStack) { o.Password = nf.Secret("x") }, kind: nf.Unreachable, why: nf.ReasonUnauthorized},
		"Project":  {reason: "likewise the project", edit: func(o *nf.OpenStack) { o.Project = "x" }, kind: nf.Unreachable, why: nf.ReasonUnauthorized},
		"Denied":   {reason: "likewise a missing permission", status: http.StatusForbidden, kind: nf.Unreachable, why: nf.ReasonForbidden},
		"Plain":    {reason: "a password is not sent without TLS", edit: func(o *nf.OpenStack) { o.AuthURL = "http://cloud.example.com/identity/v3" }, kind: nf.Unreachable, why: nf.ReasonTLS},
		"Metadata": {reason: "the operator's rules hold", edit: func(o *nf.OpenStack) { o.AuthURL = "https://169.254.169.254/v3" }, kind: nf.Unreachable, why: nf.ReasonNotAllowed},
		"Path":     {reason: "there is no Keystone at this path", status: http.StatusNotFound, kind: nf.Unreachable, why: nf.ReasonUnavailable},
		"Rate":     {reason: "the cloud limits logins, and not the service", status: http.StatusTooManyRequests, kind: nf.Unreachable, why: nf.ReasonUnavailable},
		"Down":     {reason: "a cloud may be down", status: http.StatusServiceUnavailable, kind: nf.Unreachable, why: nf.ReasonUnavailable},
		"Region":   {reason: "the cloud has no such region", edit: func(o *nf.OpenStack) { o.Region = "RegionThree" }, kind: nf.Unsupported},
		"InRegion": {reason: "a cloud with all services in the region", edit: func(o *nf.OpenStack) { o.Region = "RegionOne" }, kind: nf.Internal},
		"Works":    {reason: "a cloud with all services", kind: nf.Internal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o := newWorld(t), cloud()
			if tc.edit != nil {
				tc.edit(&o)
			}
			if tc.status != 0 {
				w.Script(simulator.Fault{Path: "/auth/tokens", Status: tc.status})
			}
			err := w.clouds().Login(t.Context(), o)
			wantNoSecret(t, err)
			if (err == nil) != (tc.kind == nf.Internal) || nf.KindOf(err) != tc.kind || nf.ReasonOf(err) != tc.why {
				t.Errorf("%s: the error is %v (%s, %s), want %s, %s", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err), tc.kind, tc.why)
			}
		})
	}
}

// TestRegion uses the services of the region that is given, and of no other.
func TestRegion(t *testing.T) {
	t.Parallel()
	cases := map[string]func(context.Context, *openstack.Clouds, nf.OpenStack) error{
		"Servers": func(ctx context.Context, c *openstack.Clouds, o nf.OpenStack) error {
			_, err := c.Machines(ctx, o, group())
			return err
		},
		"Stacks": func(ctx context.Context, c *openstack.Clouds, o nf.OpenStack) error {
			_, err := c.StackServers(ctx, o, "stack")
			return err
		},
	}
	for name, call := range cases {
		for region, second := range map[string]bool{"": false, "RegionOne": false, "RegionTwo": true} {
			t.Run(name+region, func(t *testing.T) {
				t.Parallel()
				w, o := newWorld(t), cloud()
				o.Region = region
				_ = w.Journal()
				if err := call(t.Context(), w.clouds(), o); second && nf.ReasonOf(err) != nf.ReasonUnavailable {
					t.Errorf("a region whose services are down: %v", err)
				}
				asked := 0
				for _, e := range w.Journal() {
					if strings.Contains(e.URI, "/auth/tokens") {
						continue
					}
					if asked++; strings.HasPrefix(e.URI, "/region-two/") != second {
						t.Errorf("in the region %q: %s %s", region, e.Method, e.URI)
					}
				}
				if asked == 0 {
					t.Error("no service was asked")
				}
			})
		}
	}
}
