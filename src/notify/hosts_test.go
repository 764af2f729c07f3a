package notify_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/notify"
)

func hosts(t testing.TB, only bool, list ...string) notify.Hosts {
	t.Helper()
	h, err := notify.ParseHosts(list, only)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHostsCheck(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		allowed  []string
		only     bool
		callback string
		ok       bool
	}{
		"name":             {"names are looked at when they are called", nil, false, "http://so-cnf-adapter:8090/api/notify", true},
		"https":            {"TLS is welcome", nil, false, "https://receiver.example/?token=x#frag", true},
		"private":          {"callbacks of a cluster are private", nil, false, "http://10.1.2.3:80/", true},
		"public":           {"and others are not", nil, false, "http://192.0.2.7/", true},
		"unique local":     {"IPv6 has private addresses, too", nil, false, "http://[fd12:3456::1]/", true},
		"loopback":         {"this machine's own services", nil, false, "http://127.0.0.1:2379/", false},
		"all of loopback":  {"there are 16 million of it", nil, false, "http://127.8.9.10/", false},
		"loopback 6":       {"likewise", nil, false, "http://[::1]:80/", false},
		"mapped":           {"an IPv4 address in IPv6 form", nil, false, "http://[::ffff:127.0.0.1]/", false},
		"mapped hex":       {"likewise, in another spelling", nil, false, "http://[::ffff:7f00:1]/", false},
		"compatible":       {"likewise, in an old form", nil, false, "http://[::127.0.0.1]/", false},
		"nat64":            {"a gateway would call it", nil, false, "http://[64:ff9b::a9fe:a9fe]/", false},
		"nat64 private":    {"with whatever prefix", nil, false, "http://[64:ff9b:1::7f00:1]/", false},
		"6to4":             {"a relay would call it", nil, false, "http://[2002:7f00:1::1]/", false},
		"localhost":        {"it needs no DNS", nil, false, "http://localhost/", false},
		"LOCALHOST":        {"nor any case", nil, false, "http://LocalHost./", false},
		"sub localhost":    {"nor anything before it", nil, false, "http://x.localhost/", false},
		"unspecified":      {"it means this machine", nil, false, "http://0.0.0.0/", false},
		"this network":     {"likewise", nil, false, "http://0.1.2.3/", false},
		"unspecified 6":    {"likewise", nil, false, "http://[::]/", false},
		"link-local":       {"clouds answer there with credentials", nil, false, "http://169.254.169.254/latest/meta-data/", false},
		"link-local 6":     {"whatever the zone", nil, false, "http://[fe80::1%25eth0]/", false},
		"aws 6":            {"and there", nil, false, "http://[fd00:ec2::254]/", false},
		"gcp 6":            {"and there", nil, false, "http://[fd20:ce::254]/", false},
		"alibaba":          {"and there", nil, false, "http://100.100.100.200/", false},
		"azure":            {"and there", nil, false, "http://168.63.129.16/", false},
		"multicast":        {"nobody answers a post there", nil, false, "http://224.0.0.1/", false},
		"multicast 6":      {"likewise", nil, false, "http://[ff02::1]/", false},
		"broadcast":        {"likewise", nil, false, "http://255.255.255.255/", false},
		"user":             {"a URL is no place for a password", nil, false, "http://u:p@receiver.example/", false},
		"empty user":       {"not even an empty one", nil, false, "http://@receiver.example/", false},
		"scheme":           {"nothing but HTTP", nil, false, "file:///etc/passwd", false},
		"gopher":           {"likewise", nil, false, "gopher://receiver.example/", false},
		"no scheme":        {"likewise", nil, false, "receiver.example/x", false},
		"no host":          {"somewhere", nil, false, "http:///x", false},
		"port alone":       {"somewhere", nil, false, "http://:80/x", false},
		"no url":           {"a URL", nil, false, "http://[::1", false},
		"control":          {"a URL", nil, false, "http://receiver.example/\r\nX: y", false},
		"empty":            {"something", nil, false, "", false},
		"allowed name":     {"the operator may allow it", []string{"localhost"}, false, "http://localhost:80/", true},
		"allowed address":  {"likewise", []string{"127.0.0.1"}, false, "http://127.0.0.1:80/", true},
		"allowed mapped":   {"in whatever form", []string{"127.0.0.1"}, false, "http://[::ffff:127.0.0.1]/", true},
		"allowed network":  {"likewise", []string{"127.0.0.0/8", "::1"}, false, "http://127.9.9.9:80/", true},
		"allowed mapped 2": {"in whatever form", []string{"::ffff:127.0.0.0/104"}, false, "http://127.9.9.9/", true},
		"allowed 6":        {"likewise", []string{"[::1]"}, false, "http://[::1]/", true},
		"other address":    {"and nothing else by that", []string{"127.0.0.1"}, false, "http://127.0.0.2/", false},
		"below":            {"all names below one", []string{"*.onap.svc"}, false, "http://so.onap.svc/", true},
		"only name":        {"the list may be all there is", []string{"so.onap.svc"}, true, "http://so.onap.svc/", true},
		"only other name":  {"likewise", []string{"so.onap.svc"}, true, "http://cds.onap.svc/", false},
		"only suffix":      {"a name that ends alike is another", []string{"*.onap.svc"}, true, "http://evilonap.svc/", false},
		"only address":     {"likewise", []string{"10.0.0.0/8"}, true, "http://10.1.1.1/", true},
		"only other":       {"likewise", []string{"10.0.0.0/8"}, true, "http://11.1.1.1/", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := hosts(t, tc.only, tc.allowed...).Check(tc.callback)
			if (err == nil) != tc.ok {
				t.Errorf("%s: %q: got %v, want allowed: %v", tc.reason, tc.callback, err, tc.ok)
			}
		})
	}
}

func TestParseHostsRefuses(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "*", "*.", ".", "http://x", "a/b", "x:80", "10.0.0.0/33", "a b", "a*b"} {
		if h, err := notify.ParseHosts([]string{entry}, false); err == nil {
			t.Errorf("%q is taken for %+v", entry, h)
		}
	}
}

// TestPostIsGuarded posts to a receiver on this machine, past the check of the
// URL: what is called is looked at when it is called.
func TestPostIsGuarded(t *testing.T) {
	t.Parallel()
	received := make(chan *http.Request, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			code := http.StatusTemporaryRedirect
			if r.URL.Query().Get("get") != "" {
				code = http.StatusFound
			}
			http.Redirect(w, r, to, code)
			return
		}
		received <- r
	}))
	t.Cleanup(receiver.Close)
	at, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	port := ":" + at.Port()
	redirect := func(to string) string { return "http://127.0.0.1" + port + "/?to=" + url.QueryEscape(to) }
	cases := map[string]struct {
		reason  string
		allowed []string
		url     string
		status  int // 0: an error
		arrives bool
	}{
		"allowed":            {"the operator has allowed it", []string{"127.0.0.1"}, "http://127.0.0.1" + port, 200, true},
		"not allowed":        {"he has not", nil, "http://127.0.0.1" + port, 0, false},
		"name":               {"where a name leads counts", nil, "http://localhost" + port, 0, false},
		"allowed name":       {"a name that he allows may lead anywhere", []string{"localhost"}, "http://localhost" + port, 200, true},
		"mapped":             {"another form of the address is the same", nil, "http://[::ffff:127.0.0.1]" + port, 0, false},
		"redirect":           {"a redirect is followed", []string{"127.0.0.1"}, redirect("http://127.0.0.1" + port + "/end"), 200, true},
		"redirect to hidden": {"but not to where nobody may", []string{"127.0.0.1"}, redirect("http://localhost" + port), 0, false},
		"redirect to cloud":  {"likewise", []string{"127.0.0.1"}, redirect("http://169.254.169.254/"), 0, false},
		"redirect to file":   {"nor to another scheme", []string{"127.0.0.1"}, redirect("file:///etc/passwd"), 0, false},
		"redirect with user": {"nor with a password", []string{"127.0.0.1"}, redirect("http://u:p@127.0.0.1" + port), 0, false},
		"redirect as GET":    {"a redirect that makes a GET of it tells nobody anything", []string{"127.0.0.1"}, redirect("http://127.0.0.1"+port) + "&get=1", 302, false},
		"redirect for ever":  {"nor for ever", []string{"127.0.0.1"}, redirect(redirect(redirect(redirect(redirect("http://127.0.0.1" + port))))), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, err := notify.NewPoster(hosts(t, false, tc.allowed...)).Post(t.Context(), tc.url, map[string]string{"X": "y"}, []byte(`{"a":1}`))
			if status != tc.status || (err == nil) != (tc.status != 0) {
				t.Errorf("%s: got %d, %v; want %d", tc.reason, status, err, tc.status)
			}
			if err != nil && strings.Contains(err.Error(), "to=") {
				t.Errorf("the error tells the URL: %v", err)
			}
			select {
			case r := <-received:
				if !tc.arrives || r.Method != http.MethodPost || r.Header.Get("X") != "y" {
					t.Errorf("%s: %s %s has arrived", tc.reason, r.Method, r.URL)
				}
			default:
				if tc.arrives {
					t.Errorf("%s: nothing has arrived", tc.reason)
				}
			}
		})
	}
}

// TestPostReadsLittle has a receiver that answers without end.
func TestPostReadsLittle(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for ctx.Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(cancel)
	status, err := notify.NewPoster(hosts(t, false, "127.0.0.1")).Post(t.Context(), receiver.URL, nil, nil)
	if status != http.StatusOK || err != nil {
		t.Errorf("got %d, %v; want 200: nobody reads what a receiver has to say", status, err)
	}
}

func FuzzHosts(f *testing.F) {
	for _, seed := range [][2]string{
		{"127.0.0.1", "http://127.0.0.1/"}, {"*.onap.svc", "http://so.onap.svc:80/x"}, {"::ffff:0:0/96", "http://[::ffff:1.2.3.4]"},
		{"fe80::1%eth0", "http://[fe80::1%25eth0]/"}, {"", "http://0x7f.1/"}, {"a", "http://[::]:0/"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, entry, callback string) {
		allowed := notify.Hosts{}
		if err := allowed.Check(callback); err == nil {
			u, err := url.Parse(callback)
			if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("%q is allowed", callback)
			}
			if ip := net.ParseIP(u.Hostname()); ip != nil && (ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast()) {
				t.Errorf("%q is allowed, which leads to %v", callback, ip)
			}
		}
		h, err := notify.ParseHosts([]string{entry}, true)
		if err != nil {
			return
		}
		for _, address := range []string{"http://203.0.113.77/", "http://[2001:db8::77]/"} {
			if !strings.ContainsAny(entry, "/7") && h.Check(address) == nil {
				t.Errorf("only %q is allowed, and so is %s", entry, address)
			}
		}
	})
}
