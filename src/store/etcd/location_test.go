package etcd

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestParseLocation(t *testing.T) {
	cases := map[string]struct {
		reason   string
		location string
		want     Config
	}{
		"Host": {"the port is known", "db", Config{Endpoints: []string{"http://db:2379"}}},
		"Hosts": {"the nodes of a cluster", "a:2379,10.0.0.2:12379,[::1],[fd00::1]:1/", Config{
			Endpoints: []string{"http://a:2379", "http://10.0.0.2:12379", "http://[::1]:2379", "http://[fd00::1]:1"}}},
		"User": {"what follows the last @ is the nodes", "k8s:p@ss:w%40rd%2F%3F@a,b", Config{
			User: "k8s", Password: nf.Secret("p@ss:w@rd/?"), Endpoints: []string{"http://a:2379", "http://b:2379"}}},
		"TLS":       {"the system's authorities are trusted", "a?tls=true", Config{Endpoints: []string{"https://a:2379"}}},
		"Authority": {"one's own authority is", "a?ca=/etc/ca%20x.pem", Config{Endpoints: []string{"https://a:2379"}, CA: "/etc/ca x.pem"}},
		"Everything": {"all at once", "u:p@a,b?ca=ca.pem&cert=c.pem&key=k.pem&tls=true", Config{
			Endpoints: []string{"https://a:2379", "https://b:2379"}, CA: "ca.pem", Cert: "c.pem", Key: "k.pem", User: "u", Password: nf.Secret("p")}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLocation(c.location)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestParseLocationRefuses puts a password into all that is wrong: no error may
// show it.
func TestParseLocationRefuses(t *testing.T) {
	const secret = "hunter2"
	cases := map[string]struct {
		reason   string
		location string
	}{
		"Nothing":      {"somewhere it must be", ""},
		"NoHost":       {"somewhere it must be", "user:hunter2@"},
		"EmptyHost":    {"a comma stands between two", "user:hunter2@a,,b"},
		"NoPassword":   {"etcd knows users by their passwords", "hunter2@a"},
		"NoUser":       {"a password is somebody's", ":hunter2@a"},
		"BadPassword":  {"a password is encoded", "user:hunter2%zz@a"},
		"OpenQuestion": {"the rest of the password is no option", "user:x?hunter2@a"},
		"OpenOption":   {"nor the name of one", "user:x?hunter2=y@a"},
		"OpenPercent":  {"nor is it shown because it cannot be read", "user:x?%hunter2@a"},
		"OpenPort":     {"nor is it a port", "user:hunter2?@a"},
		"Slash":        {"a node has no path", "user:x@hunter2/a"},
		"Scheme":       {"the scheme was read before", "http://user:hunter2@a"},
		"Port":         {"a port is a number", "a:hunter2"},
		"NoPort":       {"a colon is followed by a port", "a:"},
		"PortZero":     {"a port is not zero", "a:0"},
		"PortTooLarge": {"a port has 16 bits", "a:65536"},
		"Zone":         {"an address without its brackets is not one", "::1"},
		"Unknown":      {"an option that means nothing is a mistake", "a?hunter2=true"},
		"Twice":        {"which of them?", "a?ca=hunter2&ca=hunter2"},
		"NoFile":       {"an option says something", "a?ca="},
		"TLS":          {"one way to say it", "a?tls=hunter2"},
		"TLSFalse":     {"certificates are not for nothing", "a?tls=false&ca=hunter2"},
		"Cert":         {"a certificate without its key proves nothing", "a?cert=hunter2"},
		"Key":          {"nor a key without its certificate", "a?key=hunter2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLocation(c.location)
			if err == nil || nf.KindOf(err) != nf.Invalid {
				t.Fatalf("%s: the error is %v, want an invalid location", c.reason, err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows the password: %v", c.reason, err)
			}
			if diff := cmp.Diff(Config{}, got); diff != "" {
				t.Errorf("%s: something was read all the same (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func FuzzParseLocation(f *testing.F) {
	for _, seed := range []string{
		"a", "a:1,b,[::1]", "u:p@a/", "u:p@ss%40@a,b?ca=x&cert=y&key=z", "a?tls=true", "a?tls=true&ca=%2Fx", "u:%zz@a", ":@", "@", "?", "a:,b", "u:x?y@a", "[", "a;b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, location string) {
		config, err := ParseLocation(location)
		if err != nil {
			if nf.KindOf(err) != nf.Invalid {
				t.Errorf("the error is %v (%s), want an invalid one", err, nf.KindOf(err))
			}
			return
		}
		again, err := ParseLocation(locationOf(t, config))
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if diff := cmp.Diff(config, again); diff != "" {
			t.Errorf("what was read, written and read again is something else (-once +twice):\n%s", diff)
		}
		config.Password = nf.Secret("hunter2")
		if text := fmt.Sprintf("%v %+v %#v", config, config, config); strings.Contains(text, "hunter2") || strings.Contains(text, "104 117 110") {
			t.Errorf("a printed configuration shows the password: %s", text)
		}
	})
}

// locationOf writes the location of a configuration.
func locationOf(t *testing.T, c Config) string {
	t.Helper()
	hosts := slices.Clone(c.Endpoints)
	options := url.Values{}
	for i, endpoint := range hosts {
		scheme, host, _ := strings.Cut(endpoint, "://")
		if scheme == "https" {
			options.Set("tls", "true")
		}
		hosts[i] = host
	}
	for name, file := range map[string]string{"ca": c.CA, "cert": c.Cert, "key": c.Key} {
		if file != "" {
			options.Set(name, file)
		}
	}
	location := strings.Join(hosts, ",") + "?" + options.Encode()
	if c.User != "" {
		escape := func(s string) string { return strings.ReplaceAll(url.PathEscape(s), ":", "%3A") }
		location = escape(c.User) + ":" + escape(string(c.Password)) + "@" + location
	}
	return location
}
