package nf_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestVIMOfRegion(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	east, west := nf.Region{ID: "east", VIM: &nf.VIM{Name: "The east"}}, nf.Region{ID: "west"}
	if id := east.VIMID(); !uuid.MatchString(id) || id == west.VIMID() || id != (nf.Region{ID: "east"}).VIMID() {
		t.Errorf("the id is %q; it is a UUID that only the region's id decides", id)
	}
	if id := east.VIMID(); id != "35715d26-6fc7-894f-a012-f0a657c615bb" {
		t.Errorf("the id is %q: clients have stored another", id)
	}
	for id, want := range map[string]bool{east.VIMID(): true, strings.ToUpper(east.VIMID()): true, west.VIMID(): false, "east": false, "": false} {
		if got := east.IsVIM(id); got != want {
			t.Errorf("%q is the VIM's id: %t, want %t", id, got, want)
		}
	}
	for name, r := range map[string]nf.Region{"The east": east, "west": west, "north": {ID: "north", VIM: &nf.VIM{}}} {
		if got := r.VIMName(); got != name {
			t.Errorf("the VIM's name is %q, want %q", got, name)
		}
	}
}

func TestScopeOfCloud(t *testing.T) {
	cloud := nf.OpenStack{AuthURL: "https://x/v3/", Username: "ann", Project: "edge", Region: "one"}
	cases := map[string]struct {
		reason string
		edit   func(*nf.OpenStack)
		same   bool
	}{
		"Slash":   {"slashes at the end of the URL do not count", func(o *nf.OpenStack) { o.AuthURL = "https://x/v3" }, true},
		"User":    {"another user has the same scope", func(o *nf.OpenStack) { o.Username = "bob" }, true},
		"Default": {"no domain is the default domain", func(o *nf.OpenStack) { o.ProjectDomain = "Default" }, true},
		"URL":     {"another cloud", func(o *nf.OpenStack) { o.AuthURL = "https://y/v3" }, false},
		"Project": {"another project", func(o *nf.OpenStack) { o.Project = "core" }, false},
		"Domain":  {"a project of that name in another domain", func(o *nf.OpenStack) { o.ProjectDomain = "lab" }, false},
		"Region":  {"another region of the cloud", func(o *nf.OpenStack) { o.Region = "two" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			other := cloud
			tc.edit(&other)
			if same := cloud.Scope() == other.Scope(); same != tc.same {
				t.Errorf("%s: the scopes are the same: %t", tc.reason, same)
			}
		})
	}
}

// TestOpenStackHasNoAccess checks that a region of OpenStack is never connected to.
func TestOpenStackHasNoAccess(t *testing.T) {
	r := nf.Region{ID: "vms", Type: nf.OpenStackRegion, Access: nf.Access{Server: "https://x"}}
	if why := r.NoAccess(); !strings.Contains(why, "OpenStack") {
		t.Errorf("the reason is %q", why)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "cloud", nf.OpenStack{AuthURL: "https://x", Password: nf.Secret("s3cret")})
	if text := log.String(); !strings.Contains(text, "https://x") || strings.Contains(text, "czNjcmV0") {
		t.Errorf("the log shows the URL only: %s", text)
	}
}
