package native

import (
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// about serves the version of the service.
type about struct{ version string }

func (a about) routes(on route) { on(http.MethodGet, "/version", a.get) }

func (a about) get(w http.ResponseWriter, _ *http.Request) error {
	return northbound.Answer(w, http.StatusOK, wire.Version{Version: a.version})
}
