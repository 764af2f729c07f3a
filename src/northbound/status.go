package northbound

import (
	"errors"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// outcomes maps the kinds of errors to HTTP statuses and problem titles.
var outcomes = map[nf.Kind]struct {
	status int
	title  string
}{
	nf.Internal:    {http.StatusInternalServerError, "Internal error"},
	nf.Invalid:     {http.StatusBadRequest, "Bad request"},
	nf.NotFound:    {http.StatusNotFound, "Not found"},
	nf.Exists:      {http.StatusConflict, "Already exists"},
	nf.Conflict:    {http.StatusConflict, "Conflict"},
	nf.Busy:        {http.StatusConflict, "Operation in progress"},
	nf.Unreachable: {http.StatusBadGateway, "Region or store unreachable"},
	nf.Unsupported: {http.StatusUnprocessableEntity, "Not supported by the region"},
	nf.TooLarge:    {http.StatusRequestEntityTooLarge, "Limit exceeded"},
	nf.Failed:      {http.StatusFailedDependency, "Operation failed"},
	nf.Timeout:     {http.StatusGatewayTimeout, "Timed out"},
	nf.Cancelled:   {http.StatusConflict, "Cancelled"},

	nf.Unauthenticated: {http.StatusUnauthorized, "Authentication required"},
	nf.Forbidden:       {http.StatusForbidden, "Permission denied"},
	nf.TooManyRequests: {http.StatusTooManyRequests, "Rate limit exceeded"},
}

// Status returns the HTTP status of an error.
func Status(err error) int {
	if p, ok := errors.AsType[*protocolError](err); ok {
		return p.status
	}
	return outcomes[nf.KindOf(err)].status
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
