package outbox

import (
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// Follow decides about a redirect of an HTTPS target, for which tests have no
// certificate that the sender trusts.
func Follow(h outbound.Hosts, req *http.Request, via []*http.Request) error {
	return (&sender{hosts: h}).follow(req, via)
}
