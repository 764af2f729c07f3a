package northbound

import (
	"errors"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// outcomes is the one table from kinds of error to what a client is told.
var outcomes = map[nf.Kind]struct {
	status int
	title  string
}{
	nf.Internal:    {http.StatusInternalServerError, "The service failed"},
	nf.Invalid:     {http.StatusBadRequest, "The request is wrong"},
	nf.NotFound:    {http.StatusNotFound, "There is no such thing"},
	nf.Exists:      {http.StatusConflict, "The name is taken"},
	nf.Conflict:    {http.StatusConflict, "Something else forbids it"},
	nf.Busy:        {http.StatusConflict, "Another operation is running"},
	nf.Unreachable: {http.StatusBadGateway, "The region or the store cannot be reached"},
	nf.Unsupported: {http.StatusUnprocessableEntity, "The region does not support it"},
	nf.TooLarge:    {http.StatusRequestEntityTooLarge, "A limit is exceeded"},
	nf.Failed:      {http.StatusFailedDependency, "It was applied but did not work"},
	nf.Timeout:     {http.StatusGatewayTimeout, "A deadline passed"},
	nf.Cancelled:   {http.StatusConflict, "Somebody asked to stop it"},

	nf.Unauthenticated: {http.StatusUnauthorized, "Nobody knows who asks"},
	nf.Forbidden:       {http.StatusForbidden, "It is not allowed"},
	nf.TooMany:         {http.StatusTooManyRequests, "Too many requests"},
}

// Status returns the HTTP status of an error.
func Status(err error) int {
	if p, ok := errors.AsType[*protocolError](err); ok {
		return p.status
	}
	return outcomes[nf.KindOf(err)].status
}

// protocolError is a refusal that only HTTP knows: no kind of error has its
// status.
type protocolError struct {
	status int
	detail string
}

func (e *protocolError) Error() string { return e.detail }

// kind is the nearest kind that a client of the API can branch on.
func (e *protocolError) kind() nf.Kind {
	if e.status == http.StatusNotFound {
		return nf.NotFound
	}
	return nf.Invalid
}

func refusal(status int, detail string) error { return &protocolError{status: status, detail: detail} }
