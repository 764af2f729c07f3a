package northbound

import (
	"errors"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// statuses maps the kinds of errors to HTTP statuses.
var statuses = map[nf.Kind]int{
	nf.Internal:    http.StatusInternalServerError,
	nf.Invalid:     http.StatusBadRequest,
	nf.NotFound:    http.StatusNotFound,
	nf.Exists:      http.StatusConflict,
	nf.Conflict:    http.StatusConflict,
	nf.Busy:        http.StatusConflict,
	nf.Unreachable: http.StatusBadGateway,
	nf.Unsupported: http.StatusUnprocessableEntity,
	nf.TooLarge:    http.StatusRequestEntityTooLarge,
	nf.Failed:      http.StatusFailedDependency,
	nf.Timeout:     http.StatusGatewayTimeout,
	nf.Cancelled:   http.StatusConflict,

	nf.Unauthenticated: http.StatusUnauthorized,
	nf.Forbidden:       http.StatusForbidden,
	nf.TooManyRequests: http.StatusTooManyRequests,
}

// Status returns the HTTP status of an error.
func Status(err error) int {
	if p, ok := errors.AsType[*protocolError](err); ok {
		return p.status
	}
	if nf.ReasonOf(err) == nf.ReasonKeystone {
		return http.StatusServiceUnavailable // as services of OpenStack respond
	}
	return statuses[nf.KindOf(err)]
}

// protocolError is an error with an HTTP status that no nf kind maps to.
type protocolError struct {
	status int
	detail string
}

func (e *protocolError) Error() string { return e.detail }

// kind returns the nearest kind that clients can branch on.
func (e *protocolError) kind() nf.Kind {
	if e.status == http.StatusNotFound {
		return nf.NotFound
	}
	return nf.Invalid
}

func refusal(status int, detail string) error { return &protocolError{status: status, detail: detail} }

// Refusal returns an error with a status that no kind has.
func Refusal(status int, detail string) error { return refusal(status, detail) }
