package outbound_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

func hosts(t testing.TB, list ...string) outbound.Hosts {
	t.Helper()
	h, err := outbound.ParseHosts(list)
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
		callback string
		ok       bool
	}{
		"name":             {"names are looked at when they are called", nil, "http://so-cnf-adapter:8090/api/notify", true},
		"https":            {"TLS is welcome", nil, "https://receiver.example/?token=x#frag", true},
		"private":          {"callbacks of a cluster are private", nil, "http://10.1.2.3:80/", true},
		"public":           {"and others are not", nil, "http://192.0.2.7/", true},
		"unique local":     {"IPv6 has private addresses, too", nil, "http://[fd12:3456::1]/", true},
		"loopback":         {"this machine's own services", nil, "http://127.0.0.1:2379/", false},
		"all of loopback":  {"there are 16 million of it", nil, "http://127.8.9.10/", false},
		"loopback 6":       {"likewise", nil, "http://[::1]:80/", false},
		"mapped":           {"an IPv4 address in IPv6 form", nil, "http://[::ffff:127.0.0.1]/", false},
		"mapped hex":       {"likewise, in another spelling", nil, "http://[::ffff:7f00:1]/", false},
		"compatible":       {"likewise, in an old form", nil, "http://[::127.0.0.1]/", false},
		"nat64":            {"a gateway would call it", nil, "http://[64:ff9b::a9fe:a9fe]/", false},
		"nat64 private":    {"with whatever prefix", nil, "http://[64:ff9b:1::7f00:1]/", false},
		"6to4":             {"a relay would call it", nil, "http://[2002:7f00:1::1]/", false},
		"localhost":        {"it needs no DNS", nil, "http://localhost/", false},
		"LOCALHOST":        {"nor any case", nil, "http://LocalHost./", false},
		"sub localhost":    {"nor anything before it", nil, "http://x.localhost/", false},
		"unspecified":      {"it means this machine", nil, "http://0.0.0.0/", false},
		"this network":     {"likewise", nil, "http://0.1.2.3/", false},
		"unspecified 6":    {"likewise", nil, "http://[::]/", false},
		"link-local":       {"clouds answer there with credentials", nil, "http://169.254.169.254/latest/meta-data/", false},
		"link-local 6":     {"whatever the zone", nil, "http://[fe80::1%25eth0]/", false},
		"aws 6":            {"and there", nil, "http://[fd00:ec2::254]/", false},
		"gcp 6":            {"and there", nil, "http://[fd20:ce::254]/", false},
		"alibaba":          {"and there", nil, "http://100.100.100.200/", false},
		"azure":            {"and there", nil, "http://168.63.129.16/", false},
		"multicast":        {"nobody answers a post there", nil, "http://224.0.0.1/", false},
		"multicast 6":      {"likewise", nil, "http://[ff02::1]/", false},
		"broadcast":        {"likewise", nil, "http://255.255.255.255/", false},
		"user":             {"a URL is no place for a password", nil, "http://u:p@receiver.example/", false},
		"empty user":       {"not even an empty one", nil, "http://@receiver.example/", false},
		"scheme":           {"nothing but HTTP", nil, "file:///etc/passwd", false},
		"gopher":           {"likewise", nil, "gopher://receiver.example/", false},
		"no scheme":        {"likewise", nil, "receiver.example/x", false},
		"no host":          {"somewhere", nil, "http:///x", false},
		"port alone":       {"somewhere", nil, "http://:80/x", false},
		"no url":           {"a URL", nil, "http://[::1", false},
		"control":          {"a URL", nil, "http://receiver.example/\r\nX: y", false},
		"empty":            {"something", nil, "", false},
		"allowed name":     {"the operator may allow it", []string{"localhost"}, "http://localhost:80/", true},
		"allowed address":  {"likewise", []string{"127.0.0.1"}, "http://127.0.0.1:80/", true},
		"allowed mapped":   {"in whatever form", []string{"127.0.0.1"}, "http://[::ffff:127.0.0.1]/", true},
		"allowed network":  {"likewise", []string{"127.0.0.0/8", "::1"}, "http://127.9.9.9:80/", true},
		"allowed mapped 2": {"in whatever form", []string{"::ffff:127.0.0.0/104"}, "http://127.9.9.9/", true},
		"allowed 6":        {"likewise", []string{"[::1]"}, "http://[::1]/", true},
		"other address":    {"and nothing else by that", []string{"127.0.0.1"}, "http://127.0.0.2/", false},
		"below":            {"all names below one", []string{"*.onap.svc"}, "http://so.onap.svc/", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := hosts(t, tc.allowed...).Check(tc.callback)
			if (err == nil) != tc.ok {
				t.Errorf("%s: %q: got %v, want allowed: %v", tc.reason, tc.callback, err, tc.ok)
			}
		})
	}
}

func TestParseHostsRefuses(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "*", "*.", ".", "http://x", "a/b", "x:80", "10.0.0.0/33", "a b", "a*b"} {
		if h, err := outbound.ParseHosts([]string{entry}); err == nil {
			t.Errorf("%q is taken for %+v", entry, h)
		}
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
		allowed := outbound.Hosts{}
		if err := allowed.Check(callback); err == nil {
			u, err := url.Parse(callback)
			if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("%q is allowed", callback)
			}
			if ip := net.ParseIP(u.Hostname()); ip != nil && (ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast()) {
				t.Errorf("%q is allowed, which leads to %v", callback, ip)
			}
		}
		if h, err := outbound.ParseHosts([]string{entry}); err == nil {
			_ = h.Check(callback) // whatever is allowed, it must not fail in another way
		}
	})
}
