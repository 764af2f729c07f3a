package catalog_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestKeepToken stores renewed tokens of an access. A replica that is late changes
// nothing.
func TestKeepToken(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	issued := func(token string, minutes int) nf.RenewedToken {
		return nf.RenewedToken{Token: nf.Secret(token), Issued: noon, Expires: noon.Add(time.Duration(minutes) * time.Minute)}
	}
	access := func(token string) nf.Access {
		return nf.Access{Server: "https://up", Token: nf.Secret(token), ServiceAccount: &nf.ServiceAccount{Namespace: "edge", Name: "a"}}
	}
	if _, err := f.Register(ctx, nf.Region{ID: "east", Access: access("t")}); err != nil {
		t.Fatal(err)
	}
	keep := func(id, of string, token nf.RenewedToken) func() error {
		return func() error { return f.KeepToken(ctx, id, access(of), token) }
	}
	update := func(edit func(*nf.Region) error) func() error {
		return func() error { _, err := f.UpdateRegion(ctx, "east", edit); return err }
	}
	replaced := access("u")
	replaced.Renewed = new(issued("forged", 999))
	steps := []struct {
		reason string
		do     func() error
		want   string // stored token; empty: none
	}{
		{"a renewed token is stored", keep("east", "t", issued("1", 60)), "1"},
		{"so is one that expires later", keep("east", "t", issued("2", 90)), "2"},
		{"but not one of a replica that was slower", keep("east", "t", issued("3", 80)), "2"},
		{"another change leaves it", update(func(r *nf.Region) error { r.Description = "d"; return nil }), "2"},
		{"so does the same access", update(func(r *nf.Region) error { r.Access = access("t"); return nil }), "2"},
		{"another access drops it", update(func(r *nf.Region) error { r.Access = replaced; return nil }), ""},
		{"a token of the former access comes too late", keep("east", "t", issued("4", 120)), ""},
		{"a region that is gone has no token", keep("west", "t", issued("5", 60)), ""},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		r, err := f.Region(ctx, "east")
		got := ""
		if r.Access.Renewed != nil {
			got = string(r.Access.Renewed.Token)
		}
		if err != nil || got != step.want {
			t.Errorf("%s: %q is stored, want %q; %v", step.reason, got, step.want, err)
		}
	}
	f.between = func(string) { // another replica renews the token during the change
		f.between = func(string) {}
		if err := f.KeepToken(ctx, "east", access("u"), issued("6", 60)); err != nil {
			t.Error(err)
		}
	}
	if r, err := f.UpdateRegion(ctx, "east", func(r *nf.Region) error { r.Description = "e"; return nil }); err != nil || r.Access.Renewed == nil || r.Description != "e" {
		t.Errorf("a change and a renewal at the same time are both stored: %+v, %v", r.Access.Renewed, err)
	}
}

// clientPair returns a client certificate and its key, in PEM.
func clientPair(t *testing.T) (certificate []byte, key nf.Secret) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", text)
}

// TestEditRenewal stores the renewal of a client certificate. A replica that is late
// changes nothing.
func TestEditRenewal(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	certificate, key := clientPair(t)
	access := func(life int64) nf.Access {
		return nf.Access{Server: "https://up", Certificate: certificate, Key: key, Rotation: &nf.Rotation{Kind: nf.RotateCertificate, Lifetime: life}}
	}
	registered, err := f.Register(ctx, nf.Region{ID: "east", Access: access(600)})
	if err != nil {
		t.Fatal(err)
	}
	request := func(of nf.Access, name string) func() error {
		return func() error {
			got, err := f.EditRenewal(ctx, "east", of, func(r *nf.CertificateRenewal) {
				if r.Request == nil {
					r.Request = &nf.CertificateRequest{Name: name, Key: nf.Secret("key of " + name)}
				}
			})
			if r, _ := f.Region(ctx, "east"); err == nil && got.Request != nil && cmp.Diff(r.Access.CertificateRenewal, &got) != "" {
				t.Errorf("it returns what is stored: %+v", got)
			}
			return err
		}
	}
	update := func(edit func(*nf.Region)) func() error {
		return func() error {
			_, err := f.UpdateRegion(ctx, "east", func(r *nf.Region) error { edit(r); return nil })
			return err
		}
	}
	replaced := registered.Access
	replaced.Rotation = nil
	steps := []struct {
		reason string
		do     func() error
		want   string // name of the stored request; empty: none
	}{
		{"a request is stored", request(registered.Access, "1"), "1"},
		{"another replica gets it", request(registered.Access, "2"), "1"},
		{"not for another access", request(replaced, "3"), "1"},
		{"another change leaves it", update(func(r *nf.Region) { r.Description = "d" }), "1"},
		{"so does another lifetime", update(func(r *nf.Region) { r.Access = access(700) }), "1"},
		{"and the same access", update(func(r *nf.Region) { r.Access = access(700) }), "1"},
		{"an access that does not rotate drops it", update(func(r *nf.Region) { r.Access.Rotation = nil }), ""},
		{"a replica is late", request(registered.Access, "4"), ""},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		got := ""
		if r, _ := f.Region(ctx, "east"); r.Access.CertificateRenewal != nil && r.Access.CertificateRenewal.Request != nil {
			got = r.Access.CertificateRenewal.Request.Name
		}
		if got != step.want {
			t.Errorf("%s: %q is stored, want %q", step.reason, got, step.want)
		}
	}
	if got, err := f.EditRenewal(ctx, "west", replaced, func(*nf.CertificateRenewal) {}); err != nil || got != (nf.CertificateRenewal{}) {
		t.Errorf("a region that is gone: %+v, %v", got, err)
	}
	for _, wrong := range []nf.Access{
		{Server: "https://up", Certificate: certificate, Key: key, Rotation: &nf.Rotation{Kind: nf.RotateToken}},
		{Kubeconfig: nf.Secret("up"), Rotation: &nf.Rotation{Kind: nf.RotateCertificate}},
	} {
		err := update(func(r *nf.Region) { r.Access = wrong })()
		if v, is := errors.AsType[nf.Violations](err); nf.KindOf(err) != nf.Invalid || !is || v[0].Field != "credentials.rotate" {
			t.Errorf("a rotation that does not fit the credential: %v", err)
		}
	}
}

// TestHoldsForbidRemoval holds a region and a package for a VNF instance, and for a
// kind that nothing but this test knows.
func TestHoldsForbidRemoval(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		holder   nf.Subject
		noun     string
		mentions []nf.Mentioned
	}{
		"Instance": {"the refusal mentions an instance", nf.Subject{Kind: nf.InstanceSubject, ID: "vnf1"}, "VNF instance vnf1", []nf.Mentioned{{Instance: "vnf1"}}},
		"Network":  {"and names any other holder with its kind", nf.Subject{Kind: "network", ID: "edge"}, "network edge", nil},
	} {
		t.Run(name, func(t *testing.T) { holdForbidsRemoval(t, tc.reason, tc.holder, tc.noun, tc.mentions) })
	}
}

func holdForbidsRemoval(t *testing.T, reason string, holder nf.Subject, noun string, mentions []nf.Mentioned) {
	t.Helper()
	f, ctx := newFixture(t), t.Context()
	if _, err := f.Register(ctx, nf.Region{ID: "east", Access: nf.Access{Kubeconfig: nf.Secret("up")}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Upload(ctx, nf.Package{ID: "p"}, bytes.NewReader(archive("v"))); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := f.Hold(ctx, nf.Holding{Holder: nf.Holder{Subject: holder}, Region: "east", Package: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	for what, remove := range map[string]func() error{
		"region": func() error { return f.RemoveRegion(ctx, "east") }, "package": func() error { return f.RemovePackage(ctx, "p") },
	} {
		if err := remove(); nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), "is used by "+noun) {
			t.Errorf("removal of a held %s: %v", what, err)
		} else if diff := cmp.Diff(mentions, nf.TextOf(err).Mentions); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", reason, what, diff)
		}
	}
	for range 2 {
		if err := errors.Join(f.Release(ctx, nf.Holding{Holder: nf.Holder{Subject: holder}, Region: "east"}), f.Release(ctx, nf.Holding{Holder: nf.Holder{Subject: holder}, Package: "p"})); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.RemoveRegion(ctx, "east"), f.RemovePackage(ctx, "p")); err != nil {
		t.Errorf("removal after release: %v", err)
	}
	if left := f.keys(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := f.Hold(ctx, nf.Holding{Holder: nf.Holder{Subject: holder}, Region: "east", Package: "p"}); nf.KindOf(err) != nf.NotFound {
		t.Errorf("hold of what is gone: %v", err)
	}
	if err := errors.Join(f.Release(ctx, nf.Holding{Holder: nf.Holder{Subject: holder}, Region: "east"}), f.Release(ctx, nf.Holding{Holder: nf.Holder{Subject: holder}, Package: "p"})); err != nil {
		t.Errorf("release of what is gone: %v", err)
	}
}

// TestRegionWithoutAccess checks that a region whose access A&AI does not have is stored,
// and gets an access later.
func TestRegionWithoutAccess(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	region := nf.Region{ID: "r1", Origin: nf.OriginAAI, AAI: &nf.AAISource{Owner: "k8s", Reason: "password is missing"}}
	made, err := f.Enlist(ctx, region)
	if err != nil || made.NoAccess() != "password is missing" {
		t.Fatalf("got %q, %v", made.NoAccess(), err)
	}
	changed, err := f.UpdateRegion(ctx, "r1", func(r *nf.Region) error { r.Description = "changed"; return nil })
	if err != nil || changed.Description != "changed" || f.probes != 0 {
		t.Fatalf("a change of a region without an access: %v, %d probes", err, f.probes)
	}
	changed, err = f.UpdateRegion(ctx, "r1", func(r *nf.Region) error {
		r.Access, r.AAI = nf.Access{Server: "https://up", Token: nf.Secret("t")}, nil
		return nil
	})
	if err != nil || changed.NoAccess() != "" || f.probes != 1 || changed.Origin != nf.OriginAAI {
		t.Fatalf("a new access: %v, %d probes, %+v", err, f.probes, changed)
	}
	region.ID, region.AAI = "r2", nil
	if _, err := f.Enlist(ctx, region); nf.KindOf(err) != nf.Invalid {
		t.Errorf("a region of no source has an access: %v", err)
	}
}

// TestOpenStackRegion stores a region of OpenStack after a login at its cloud. There is no
// cluster to connect to.
func TestOpenStackRegion(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	cloud := nf.Region{ID: "os", Type: nf.OpenStackRegion, Origin: nf.OriginTacker, VIM: &nf.VIM{OpenStack: &nf.OpenStack{AuthURL: "https://os", Password: nf.Secret("wrong")}}}
	if _, err := f.Register(ctx, cloud); nf.ReasonOf(err) != nf.ReasonUnauthorized || len(f.keys(t)) > 0 {
		t.Fatalf("a cloud that rejects the password: %v, the store has %v", err, f.keys(t))
	}
	cloud.VIM.OpenStack.Password = nf.Secret("s3cret")
	if _, err := f.Register(ctx, cloud); err != nil || f.probes != 0 {
		t.Fatalf("%v, %d probes", err, f.probes)
	}
	password := func(to string) func(*nf.Region) error {
		return func(r *nf.Region) error {
			vim, changed := *r.VIM, *r.VIM.OpenStack
			changed.Password = nf.Secret(to)
			vim.OpenStack = &changed
			r.VIM = &vim
			return nil
		}
	}
	if _, err := f.UpdateRegion(ctx, "os", password("wrong")); nf.ReasonOf(err) != nf.ReasonUnauthorized {
		t.Errorf("a change to a password that the cloud rejects: %v", err)
	}
	if changed, err := f.UpdateRegion(ctx, "os", password("s3cret-2")); err != nil || string(changed.VIM.OpenStack.Password) != "s3cret-2" {
		t.Errorf("another password: %v", err)
	}
	if _, err := f.UpdateRegion(ctx, "os", func(r *nf.Region) error {
		if string(r.VIM.OpenStack.Password) == "s3cret-2" && len(f.logins) == 5 {
			return password("of another request")(r) // the region is read again after the login
		}
		return password("s3cret-3")(r)
	}); nf.KindOf(err) != nf.Conflict {
		t.Errorf("a change beside another one: %v", err)
	}
	if diff := cmp.Diff([]string{"wrong", "s3cret", "wrong", "s3cret-2", "s3cret-3"}, f.logins); diff != "" {
		t.Errorf("the logins are (-want +got):\n%s", diff)
	}
	changed, err := f.UpdateRegion(ctx, "os", func(r *nf.Region) error { r.Description = "changed"; return nil })
	if err != nil || changed.Description != "changed" || f.probes != 0 || len(f.logins) != 5 {
		t.Errorf("a description: %v, %d probes, %d logins", err, f.probes, len(f.logins))
	}
	_, err = f.UpdateRegion(ctx, "os", func(r *nf.Region) error {
		r.Access = nf.Access{Server: "https://up", Token: nf.Secret("t")}
		return nil
	})
	if nf.KindOf(err) != nf.Invalid || f.probes != 0 {
		t.Errorf("an access: %v, %d probes", err, f.probes)
	}
	cloud.ID, cloud.VIM = "os2", nil
	if _, err := f.Register(ctx, cloud); nf.KindOf(err) != nf.Invalid {
		t.Errorf("another API registers no region of OpenStack: %v", err)
	}
}
