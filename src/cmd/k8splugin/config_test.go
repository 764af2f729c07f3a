package main

import (
	"net"
	"testing"
)

// TestRegionHosts holds which addresses the API server of a cloud region may
// have.
func TestRegionHosts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, listen, allow, address string
		refused                        bool
	}{
		"Loopback, local":  {reason: "every client of the service is on this machine already", listen: "127.0.0.1:9015", address: "127.0.0.1"},
		"Loopback, name":   {reason: "localhost is this machine", listen: "localhost:9015", address: "::1"},
		"Loopback, served": {reason: "clients of other machines do not reach this one's loopback", listen: ":9015", address: "127.0.0.1", refused: true},
		"Loopback, given":  {reason: "the operator allows it", listen: ":9015", allow: "10.0.0.0/8, 127.0.0.0/8", address: "127.0.0.1"},
		"Metadata":         {reason: "a link-local address is no API server's", listen: "127.0.0.1:9015", address: "169.254.169.254", refused: true},
		"Metadata, given":  {reason: "unless the operator says so", listen: "127.0.0.1:9015", allow: "169.254.0.0/16", address: "169.254.169.254"},
		"Private":          {reason: "most sites have private addresses", listen: ":9015", address: "10.1.2.3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosts, err := Config{Listen: tc.listen, RegionAllow: tc.allow}.regionHosts()
			if err != nil {
				t.Fatal(err)
			}
			if err := hosts.Check("https://" + net.JoinHostPort(tc.address, "6443")); (err != nil) != tc.refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
