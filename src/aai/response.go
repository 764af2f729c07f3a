package aai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// ResponseError is a response of A&AI that is not a success.
type ResponseError struct {
	Method  string
	Path    string
	Status  int
	Number  int    // of A&AI's error; 0: the response has none
	Message string // for people only
}

// Error returns, for example, "A&AI responded to GET /x with 404 (6114): not found".
func (e *ResponseError) Error() string {
	out := fmt.Sprintf("A&AI responded to %s %s with %d", e.Method, e.Path, e.Status)
	if e.Number != 0 {
		out += fmt.Sprintf(" (%d)", e.Number)
	}
	if e.Message != "" {
		out += ": " + e.Message
	}
	return out
}

// newResponseError reads A&AI's document of an error: the last of its variables is
// the code, and the one before it the message.
func newResponseError(method, path string, status int, body []byte) *ResponseError {
	path, _, _ = strings.Cut(path, "?")
	e := &ResponseError{Method: method, Path: path, Status: status}
	var doc struct {
		RequestError map[string]struct {
			Variables []string `json:"variables"`
		} `json:"requestError"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return e // such as the page of a proxy
	}
	for _, exception := range doc.RequestError {
		n := len(exception.Variables)
		if n == 0 {
			continue
		}
		code := exception.Variables[n-1]
		e.Number, _ = strconv.Atoi(code[strings.LastIndex(code, ".")+1:])
		if n > 1 {
			e.Message = exception.Variables[n-2]
		}
	}
	return e
}

// verdict says what the failure of a request means.
type verdict int

const (
	verdictAway     verdict = iota // no response, or none that helps: try again later
	verdictConflict                // an object has changed: read it again
	verdictMissing                 // an object does not exist that another one is related to, or contained in
	verdictTooMany                 // the transaction is too large
	verdictDenied                  // the account or the version is not accepted at all
	verdictRejected                // trying again does not help
)

// A&AI's numbers of errors that the status does not tell.
const (
	numberTooMany       = 6147
	numberTimeout       = 7406
	numberImpliedDelete = 9109
)

// judge returns the meaning of an error by its status and its number.
func judge(err error) verdict {
	e, ok := errors.AsType[*ResponseError](err)
	if !ok {
		return verdictAway
	}
	switch e.Status {
	case http.StatusPreconditionFailed:
		return verdictConflict
	case http.StatusNotFound:
		return verdictMissing
	case http.StatusUnauthorized, http.StatusGone:
		return verdictDenied
	case http.StatusForbidden:
		if e.Number == numberImpliedDelete {
			return verdictRejected
		}
		return verdictDenied
	case http.StatusRequestEntityTooLarge:
		return verdictTooMany
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return verdictAway
	}
	switch {
	case e.Status < 400 || e.Status > 499:
		return verdictAway
	case e.Number == numberTooMany || e.Number == numberTimeout:
		return verdictTooMany
	}
	return verdictRejected
}
