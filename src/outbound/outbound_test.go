package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

func TestHarmless(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"10.0.0.1": true, "192.168.1.1": true, "203.0.113.9": true, "100.64.0.1": true, "fd12::1": true, "2001:db8::1": true, "64:ff9b::a00:1": true,
		"::ffff:10.0.0.1": true,
		"127.0.0.1":       false, "::1": false, "0.0.0.0": false, "::": false, "169.254.169.254": false, "fe80::1": false, "224.0.0.1": false, "ff02::1": false,
		"100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false, "fd00:ec2::254": false, "255.255.255.255": false, "0.1.2.3": false,
		"64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "::7f00:1": false, "64:ff9b:1::a9fe:a9fe": false,
		"::ffff:169.254.169.254": false, "fd00:ec2::254%eth0": false, "fe80::1%eth0": false,
	} {
		if got := outbound.Harmless(netip.MustParseAddr(address)); got != want {
			t.Errorf("anybody may have %s called: %t", address, got)
		}
	}
	if outbound.Harmless(netip.Addr{}) {
		t.Error("no address at all is harmless")
	}
}

// TestDial calls a server on loopback by its address in several forms: what is
// admitted is the address in its plain one, and what is not is not connected to.
func TestDial(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			var asked []netip.Addr
			note := outbound.Dialer{Admit: func(a netip.Addr) error {
				asked = append(asked, a)
				return nil
			}}
			conn, err := note.Dial(t.Context(), "tcp4", net.JoinHostPort(host, port))
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if len(asked) != 1 || asked[0] != netip.MustParseAddr("127.0.0.1") {
				t.Errorf("%v was to be admitted", asked)
			}
			no := errors.New("not there")
			refuse := outbound.Dialer{Admit: func(netip.Addr) error { return no }}
			if _, err := refuse.Dial(t.Context(), "tcp4", net.JoinHostPort(host, port)); !errors.Is(err, no) {
				t.Errorf("what is not admitted: %v", err)
			}
		})
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	get := func(at string) error {
		resp, err := new(http.Client).Get(at)
		if err == nil {
			err = errors.Join(fmt.Errorf("%s answers", at), resp.Body.Close())
		}
		return err
	}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Refused":  {"nobody listens", get(closed.URL), "tcp"},
		"Unknown":  {"a name that no one has", get("http://nowhere.invalid"), "dns"},
		"Strange":  {"a certificate of an unknown authority", get(secure.URL), "tls"},
		"Plain":    {"TLS is spoken to who does not", get(strings.Replace(httpServer(t), "http:", "https:", 1)), "tls"},
		"Deadline": {"a context's", fmt.Errorf("cannot ask: %w", context.DeadlineExceeded), "timeout"},
		"Silent":   {"a connection's", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "timeout"},
		"Other":    {"what is no call's failure has no reason", errors.New("odd"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := outbound.Reason(tc.err); got != tc.want {
				t.Errorf("%s: %q is the reason of %v, want %q", tc.reason, got, tc.err, tc.want)
			}
		})
	}
}

func httpServer(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}

func TestPlainHidesTheURL(t *testing.T) {
	t.Parallel()
	inner := errors.New("no answer")
	told := fmt.Errorf("cannot ask: %w", &url.Error{Op: "Get", URL: "https://example.com/?signature=s3cret", Err: inner})
	for name, err := range map[string]error{"Request": told, "Other": inner} {
		if got := outbound.Plain(err); !errors.Is(got, inner) || strings.Contains(got.Error(), "s3cret") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"Charts.Example.COM.": "charts.example.com", "[::1]": "::1", "10.0.0.1": "10.0.0.1"} {
		if got := outbound.Name(host); got != want {
			t.Errorf("%q is compared as %q", host, got)
		}
	}
}
