package northbound

import (
	"net/http"

	"github.com/gorilla/mux"
)

// Strays is an API that itself answers requests below its paths that match no
// route.
type Strays interface {
	API
	// Below reports whether a path is below the API's paths.
	Below(path string) bool
	// Stray answers such a request. Allowed lists the methods that the path has
	// routes for; it is empty if the path has none.
	Stray(w http.ResponseWriter, r *http.Request, allowed string)
}

// strays answers requests that match no route.
type strays struct {
	router *mux.Router
	apis   []API
}

func (s strays) notFound(w http.ResponseWriter, r *http.Request) error {
	if api := s.of(r); api != nil {
		api.Stray(w, r, "")
		return nil
	}
	return refusal(http.StatusNotFound, "no resource has this path")
}

func (s strays) notAllowed(w http.ResponseWriter, r *http.Request) error {
	allowed := allowedMethods(s.router, r)
	w.Header().Set("Allow", allowed)
	if api := s.of(r); api != nil {
		api.Stray(w, r, allowed)
		return nil
	}
	return refusal(http.StatusMethodNotAllowed, "only "+allowed+" is allowed for this path")
}

// of returns the API that the request's path belongs to, or nil.
func (s strays) of(r *http.Request) Strays {
	for _, api := range s.apis {
		if own, ok := api.(Strays); ok && own.Below(r.URL.Path) {
			return own
		}
	}
	return nil
}
