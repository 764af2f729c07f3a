package shell_test

import (
	"context"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site/shell"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := gone.Addr().(*net.TCPAddr).Port
	_ = gone.Close() // there is no listener from now on
	other := sitetest.New(t)
	cases := map[string]struct {
		reason   string
		edit     func(*nf.SiteHost, *nf.SiteSecrets)
		why      string // empty: it is reached
		offered  bool   // a credential was offered
		password bool
	}{
		"Key":           {reason: "the key lets us in", edit: func(*nf.SiteHost, *nf.SiteSecrets) {}, offered: true},
		"Password":      {reason: "so does the password", edit: func(_ *nf.SiteHost, m *nf.SiteSecrets) { *m = password(sitetest.Password) }, offered: true},
		"FirstUse":      {reason: "a host without a pinned key is trusted", edit: func(h *nf.SiteHost, _ *nf.SiteSecrets) { h.Key = "" }, offered: true},
		"WrongPassword": {reason: "a wrong password has its own reason", edit: func(_ *nf.SiteHost, m *nf.SiteSecrets) { *m = password("wrong") }, why: "unauthorized", offered: true},
		"WrongUser":     {reason: "a wrong user has the same reason", edit: func(h *nf.SiteHost, _ *nf.SiteSecrets) { h.User = "nobody" }, why: "unauthorized", offered: true},
		"AnotherHost":   {reason: "another host gets no credential", edit: func(h *nf.SiteHost, _ *nf.SiteSecrets) { h.Key = other.Key() }, why: "host-key"},
		"AnotherType":   {reason: "nor does one that has no key of the pinned type", edit: func(h *nf.SiteHost, _ *nf.SiteSecrets) { h.Key = rsaKey }, why: "host-key"},
		"NoServer":      {reason: "no server listens", edit: func(h *nf.SiteHost, _ *nf.SiteSecrets) { h.Port = free }, why: "tcp"},
		"NoSuchName":    {reason: "the name is none", edit: func(h *nf.SiteHost, _ *nf.SiteSecrets) { h.Address = "nowhere.invalid" }, why: "dns"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := sitetest.New(t)
			h, m := host.Site(), host.Secrets()
			tc.edit(&h, &m)
			key, err := shell.Probe(t.Context(), h, m)
			switch {
			case tc.why == "" && (err != nil || key != host.Key()):
				t.Errorf("%s: %v, key %q", tc.reason, err, key)
			case tc.why != "" && (nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != tc.why):
				t.Errorf("%s: the error is %v (%s, %q), want one with the reason %q", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err), tc.why)
			}
			if offered := host.Attempts() > 0; offered != tc.offered {
				t.Errorf("%s: that a credential was offered is %t", tc.reason, offered)
			}
		})
	}
}

func TestProbeSilent(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	h := nf.SiteHost{Name: "n1", Address: "127.0.0.1", Port: silent.Addr().(*net.TCPAddr).Port, User: "x"}
	if _, err := shell.Probe(ctx, h, password("x")); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("a host that says nothing is %v, want that it cannot be reached, when the context ends", err)
	}
}

func TestUsable(t *testing.T) {
	t.Parallel()
	open := sitetest.New(t).Secrets().PrivateKey
	parsed, err := shell.PrivateKey(nf.SiteSecrets{PrivateKey: open})
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(parsed, "", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	locked := nf.Secret(pem.EncodeToMemory(block))
	for name, tc := range map[string]struct {
		reason          string
		key, passphrase nf.Secret
		want            string // what is wrong
	}{
		"Key":       {"a key is a key", open, nil, ""},
		"Locked":    {"also behind a passphrase", locked, nf.Secret("x"), ""},
		"None":      {"a text is no key", nf.Secret("no key"), nil, "it is not a private key in PEM or OpenSSH format"},
		"NoneAtAll": {"whatever its passphrase", nf.Secret("no key"), nf.Secret("x"), "it is not a private key in PEM or OpenSSH format"},
		"Broken":    {"nor is half a key", open[:len(open)/2], nil, "it is not a private key in PEM or OpenSSH format"},
		"Missing":   {"a passphrase is needed", locked, nil, "it requires a passphrase"},
		"Wrong":     {"the right one", locked, nf.Secret("y"), "the passphrase is wrong"},
		"Needless":  {"or none", open, nf.Secret("x"), "it has no passphrase, but one is given"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want nf.Violations
			if tc.want != "" {
				want = nf.Violations{{Field: "credential.private_key", Message: "cannot be read: " + tc.want}}
			}
			got := shell.Usable(nf.SiteSecrets{PrivateKey: tc.key, Passphrase: tc.passphrase})
			if diff := cmp.Diff(want, nf.ViolationsOf(got)); diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, got, diff)
			}
		})
	}
}

func password(text string) nf.SiteSecrets { return nf.SiteSecrets{Password: nf.Secret(text)} }

const rsaKey = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7vbqajDw4o6gJy8UtmIbkcpnkO3Kwc4qsEnSZp/TR+fQi62F79RHWmwKOtFmwteURgLbj7D/WGuNLGOfa/2vse3G2eHnHl5CB8ruRX9fBl/KgwCVr2JaEuUm66bBQeP5XeBotdR4cvX38uPYivCDdPjJ1QWPdspTBKcxeFbccDw=="
