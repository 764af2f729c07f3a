package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCombine combines attachments of a package with those of a request. They are
// written as network, workload and interface.
func TestCombine(t *testing.T) {
	t.Parallel()
	web, db := workload("Deployment", "web", template), workload("StatefulSet", "db", template)
	cases := map[string]struct {
		reason         string
		own, requested string
		want           string // with the address of those of the request
	}{
		"Own":            {"without a request, the package decides", "oam/*/a lan/web/", "", "oam/*/a lan/web/"},
		"Requested":      {"without a package, the request decides", "", "oam/web/", "oam/web/!"},
		"Added":          {"another network is added at the end", "oam/web/a", "lan/web/b", "oam/web/a lan/web/b!"},
		"Network":        {"an entry for the same network replaces it in its place, and has its interface", "oam/web/a lan/web/b", "oam/web/", "oam/web/a! lan/web/b"},
		"Interface":      {"an entry for the same interface replaces it", "oam/web/a lan/web/b", "wan/web/b", "oam/web/a wan/web/b!"},
		"Unnamed":        {"an entry for the network replaces one whose interface may have any name", "oam/web/", "oam/web/b", "oam/web/b!"},
		"Second":         {"another interface of the same network is added", "oam/web/a", "oam/web/b", "oam/web/a oam/web/b!"},
		"Each":           {"each entry replaces at most one", "oam/web/a oam/web/b", "oam/web/ oam/web/", "oam/web/a! oam/web/b!"},
		"Other workload": {"an entry for another workload is added", "oam/web/a", "oam/db/a", "oam/web/a oam/db/a!"},
		"Selectors":      {"selectors are compared by what they select", "oam/Deployment/web/a", "oam/web/", "oam/web/a!"},
		"One of all":     {"the others keep that of the package", "lan/*/ oam/*/a", "oam/web/", "lan/*/ oam/web/a! oam/StatefulSet/db/a"},
		"All of one":     {"an entry for all replaces that for one, and has no interface that not all have", "oam/web/a lan/db/", "oam/*/", "oam/*/a! lan/db/"},
		"Both":           {"interfaces that differ are not taken over", "oam/web/a oam/db/b", "oam/*/", "oam/*/!"},
		"Wrong":          {"wrong workloads stay as they are", "oam/none/a", "oam/nothing/", "oam/none/a oam/nothing/!"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			requested := combined(tc.requested)
			for i := range requested {
				requested[i].MAC = "!"
			}
			for _, c := range planOf(t, web, db).Combine(combined(tc.own), requested) {
				got = append(got, fmt.Sprintf("%s/%s/%s%s", c.Network, c.Workload, c.Interface, c.MAC))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// combined reads attachments: "oam/Deployment/web/net1 …".
func combined(text string) (out []nf.Connection) {
	for entry := range strings.FieldsSeq(text) {
		network, rest, _ := strings.Cut(entry, "/")
		last := strings.LastIndex(rest, "/")
		out = append(out, nf.Connection{Attachment: nf.Attachment{Network: network, Workload: rest[:last], Interface: rest[last+1:]}})
	}
	return out
}

// TestAttachPlace checks that a fault of an attachment of a package names its file and
// line.
func TestAttachPlace(t *testing.T) {
	t.Parallel()
	at := func(field string) int { return 10 + len(field) }
	own := func(a nf.Attachment) []nf.Connection {
		return []nf.Connection{{Attachment: a, At: nf.Place{Field: "networks[0]", File: "metadata.yaml", Lines: at}}}
	}
	cases := map[string]struct {
		reason string
		a      nf.Attachment
		want   string
	}{
		"Workload":  {"no such workload", nf.Attachment{Network: "a", Workload: "db"}, `metadata.yaml:18: networks[0].workload: "db" is not in the package; its objects with pods are Deployment/web`},
		"Interface": {"a reserved name", nf.Attachment{Network: "a", Interface: "lo"}, "metadata.yaml:19: networks[0].interface: lo is the loopback interface"},
		"Clash":     {"the package has the interface in its annotation", nf.Attachment{Network: "a", Interface: "net1"}, "metadata.yaml:19: networks[0].interface: net1 of Deployment/web is attached to the network x already"},
		"Driver":    {"the driver refuses it", nf.Attachment{Network: "none"}, "metadata.yaml:16: networks[0].ips[0]: is wrong; metadata.yaml:10: networks[0]: is not possible"},
	}
	p := planOf(t, workload("Deployment", "web", `template: {metadata: {annotations: {`+networksKey+`: x}}, spec: {containers: [{name: c}]}}`))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := p.Attach(own(tc.a), connect)
			var got []string
			for _, v := range nf.ViolationsOf(err) {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
