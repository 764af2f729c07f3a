package native

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// respond answers 200 with the document of a value, or returns the error that
// came instead of the value.
func respond[T, D any](w http.ResponseWriter, value T, err error, document func(T) D) error {
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, document(value))
}

// warn sets a Warning header for each warning, as Kubernetes' API server does, for
// a response without a body.
func warn(w http.ResponseWriter, warnings []string) {
	for _, text := range warnings {
		line := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, text)
		w.Header().Add("Warning", `299 - "`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(line)+`"`)
	}
}

// noContent answers 204, or returns the error.
func noContent(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// optional returns the handler of a part that may be missing in this service. If
// it is missing, the handler returns the given error.
func optional(missing error, h northbound.Handler) northbound.Handler {
	if missing == nil {
		return h
	}
	return func(http.ResponseWriter, *http.Request) error { return missing }
}
