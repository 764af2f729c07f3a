package chartsource_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestHosts asks a server on loopback, encrypted or not, under what the operator
// has allowed.
func TestHosts(t *testing.T) {
	t.Parallel()
	site := pages{"/web.tgz": archive}
	plain := httptest.NewServer(site)
	t.Cleanup(plain.Close)
	open, err := url.Parse(plain.URL)
	if err != nil {
		t.Fatal(err)
	}
	secure, roots := serve(t, site)
	cases := map[string]struct {
		reason       string
		allow, plain []string
		url          string // PORT is the server's
		kind         nf.Kind
		words        string // of the error; empty: it is fetched
	}{
		"Nothing":         {"nothing is allowed unless something is", nil, nil, "https://127.0.0.1:PORT/web.tgz", nf.Forbidden, "--allowed-chart-hosts"},
		"Allowed":         {"what is allowed is fetched", []string{"127.0.0.1"}, nil, "https://127.0.0.1:PORT/web.tgz", 0, ""},
		"Port":            {"a port can be named", []string{"127.0.0.1:" + secure.Port()}, nil, "https://127.0.0.1:PORT/web.tgz", 0, ""},
		"OtherPort":       {"and then it is that one", []string{"127.0.0.1:1"}, nil, "https://127.0.0.1:PORT/web.tgz", nf.Forbidden, "--allowed-chart-hosts"},
		"Pattern":         {"no pattern allows loopback", []string{"*"}, nil, "https://127.0.0.1:PORT/web.tgz", nf.Forbidden, "it resolves to 127.0.0.1"},
		"PatternName":     {"by whatever name", []string{"*", "local*"}, nil, "https://localhost:PORT/web.tgz", nf.Forbidden, "it resolves to"},
		"OtherName":       {"nor does another name of it", []string{"127.0.0.2", "*"}, nil, "https://127.0.0.1:PORT/web.tgz", nf.Forbidden, "it resolves to 127.0.0.1"},
		"Metadata":        {"a cloud's service is never asked, allowed or not", []string{"169.254.169.254"}, nil, "https://169.254.169.254/web.tgz", nf.Forbidden, "it resolves to 169.254.169.254"},
		"MetadataMapped":  {"nor in the form of IPv6", []string{"::ffff:169.254.169.254"}, nil, "https://[::ffff:169.254.169.254]/web.tgz", nf.Forbidden, "it resolves to 169.254.169.254"},
		"Plain":           {"nothing is asked without TLS", []string{"127.0.0.1"}, nil, "http://127.0.0.1:PORT/web.tgz", nf.Forbidden, "--plain-http-chart-hosts"},
		"PlainAllowed":    {"unless that is allowed", []string{"127.0.0.1"}, []string{"127.0.0.1"}, "http://127.0.0.1:PORT/web.tgz", 0, ""},
		"PlainNotAllowed": {"which does not allow the host", []string{"registry.example.com"}, []string{"127.0.0.1"}, "http://127.0.0.1:PORT/web.tgz", nf.Forbidden, "listed in --allowed-chart-hosts"},
		"Case":            {"names have no case", []string{"Registry.Example.COM"}, nil, "https://charts.example.com/web.tgz", nf.Forbidden, "listed in --allowed-chart-hosts"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := secure.Port()
			if strings.HasPrefix(tc.url, "http://") {
				port = open.Port()
			}
			s := newSource(t, chartsource.Config{Allow: tc.allow, PlainHTTP: tc.plain, Roots: roots})
			got, err := fetchInto(t.Context(), s, chartsource.ChartRef{URL: strings.ReplaceAll(tc.url, "PORT", port)})
			switch {
			case tc.words == "" && (err != nil || string(got.archive) != archive):
				t.Errorf("%s: %v", tc.reason, err)
			case tc.words != "" && (nf.KindOf(err) != tc.kind || err == nil || !strings.Contains(err.Error(), tc.words)):
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := chartsource.New(chartsource.Config{Allow: []string{"https://registry.example.com"}}); err == nil {
		t.Error("a URL is no host")
	}
	if _, err := chartsource.New(chartsource.Config{PlainHTTP: []string{""}}); err == nil {
		t.Error("nothing is no host")
	}
}

// TestUnencryptedRegistry pulls from one that is excepted.
func TestUnencryptedRegistry(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newRegistry())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	s := newSource(t, chartsource.Config{Allow: []string{host}, PlainHTTP: []string{host}})
	if got := fetch(t, s, chartsource.ChartRef{URL: "oci://" + host + "/charts/web", Version: "1.2.0"}, host); got.Archive != archive {
		t.Errorf("an excepted registry: %+v", got)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	strange, _ := serve(t, pages{})
	for name, tc := range map[string]struct{ url, reason string }{
		"Refused": {"https://127.0.0.1:1", "tcp"},
		"Unknown": {"https://nowhere.invalid", "dns"},
		"Strange": {strange.String(), "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, chartsource.Config{Allow: []string{"127.0.0.1", "nowhere.invalid"}})
			_, err := fetchInto(t.Context(), s, chartsource.ChartRef{URL: tc.url + "/web.tgz"})
			if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != tc.reason {
				t.Errorf("%s: %q, %v", tc.url, nf.ReasonOf(err), err)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	s := newSource(t, chartsource.Config{Allow: []string{"*"}})
	for name, tc := range map[string]struct {
		ref   chartsource.ChartRef
		field string
	}{
		"Empty":     {chartsource.ChartRef{}, "chart.url"},
		"NoScheme":  {chartsource.ChartRef{URL: "registry.example.com/charts/web"}, "chart.url"},
		"OddScheme": {chartsource.ChartRef{URL: "file:///etc/passwd"}, "chart.url"},
		"FTP":       {chartsource.ChartRef{URL: "ftp://registry.example.com/a"}, "chart.url"},
		"Userinfo":  {chartsource.ChartRef{URL: "https://ann:s3cret@registry.example.com/a"}, "chart.url"},
		"Query":     {chartsource.ChartRef{URL: "oci://registry.example.com/a?b=c"}, "chart.url"},
		"NoPath":    {chartsource.ChartRef{URL: "oci://registry.example.com"}, "chart.url"},
		"Upwards":   {chartsource.ChartRef{URL: "oci://registry.example.com/../A"}, "chart.url"},
		"Digest":    {chartsource.ChartRef{URL: "oci://registry.example.com/a", Digest: "md5:abc"}, "chart.digest"},
		"Password":  {chartsource.ChartRef{URL: "oci://registry.example.com/a", Username: "ann"}, "chart.password"},
		"Colon":     {chartsource.ChartRef{URL: "oci://registry.example.com/a", Username: "a:b", Password: nf.Secret("x")}, "chart.username"},
		"Break":     {chartsource.ChartRef{URL: "oci://registry.example.com/a", Password: nf.Secret("x\ny: z")}, "chart.password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := fetchInto(t.Context(), s, tc.ref)
			if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].Field != tc.field {
				t.Errorf("%+v: %v", tc.ref, err)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}
