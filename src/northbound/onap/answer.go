package onap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

// Texts that clients match: ONAP's errors named its database.
const (
	noDocuments = "Error finding master table: mongo: no documents in result"
	noObjects   = "Did not find any objects with tag: " // followed by the tag
)

// refusal is an error in ONAP's form: a status and a line of text.
type refusal struct {
	status int // as in ONAP's releases
	strict int // with Config.Strict
	text   string
	cause  error // its kind is logged and audited
}

// Error returns the text sent to the client.
func (e *refusal) Error() string { return e.text }

// Unwrap returns the cause.
func (e *refusal) Unwrap() error { return e.cause }

// refuse returns the error for an invalid request, with the same status in both
// styles.
func refuse(status int, text string) error {
	return &refusal{status: status, strict: status, text: text, cause: nf.E(nf.Invalid, "read", "the request", errors.New(text))}
}

// fail returns the error for a failed action. The status is 500 as in ONAP; in
// the strict style, it is that of the error's kind. The text is "what: cause".
// For nf.NotFound the cause is the text that clients match; for nf.Internal it
// is hidden. If err is a refusal, fail only prepends what to its text.
func fail(what string, err error) error {
	cause := causeText(err)
	if e, ok := errors.AsType[*refusal](err); ok {
		return &refusal{status: e.status, strict: e.strict, text: prefix(what, e.text), cause: e.cause}
	}
	return failAs(prefix(what, cause), err)
}

// failAs is fail with the given text.
func failAs(text string, err error) error {
	e := &refusal{status: http.StatusInternalServerError, strict: northbound.Status(err), text: text, cause: err}
	switch nf.KindOf(err) {
	case nf.Unauthenticated, nf.Forbidden, nf.TooManyRequests, nf.TooLarge:
		e.status = e.strict // ONAP has no such errors
	default:
	}
	return e
}

// onlyIf returns failAs with the text for an error of the given kind, and fail
// for any other.
func onlyIf(kind nf.Kind, err error, text, what string) error {
	if err != nil && nf.KindOf(err) == kind {
		return failAs(text, err)
	}
	return fail(what, err)
}

func prefix(what, text string) string {
	if what == "" {
		return text
	}
	return what + ": " + text
}

// causeText returns the text for an error's cause.
func causeText(err error) string {
	switch nf.KindOf(err) {
	case nf.NotFound:
		return noDocuments
	case nf.Internal:
		return "an unexpected failure; the log has its cause under the request's id"
	default:
		return err.Error()
	}
}

// handle wraps a handler so that its error is answered as a line of text.
func handle(h northbound.Handler, strict bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			writeError(w, r, err, strict)
		}
	})
}

// writeError answers with an error as a line of text. Strict is Config.Strict.
func writeError(w http.ResponseWriter, r *http.Request, err error, strict bool) {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		e, _ = errors.AsType[*refusal](fail("", err))
	}
	northbound.Report(w, r, e.cause)
	status := e.status
	if strict {
		status = e.strict
	}
	if e.text == "" {
		w.WriteHeader(status)
		return
	}
	text := strings.TrimRight(e.text, "\n")
	if id := northbound.RequestID(r.Context()); id != "" && nf.KindOf(e.cause) == nf.Internal {
		text += " " + id
	}
	http.Error(w, text, status)
}

// answer writes one JSON value and a newline.
func answer(w http.ResponseWriter, status int, document any) error {
	return northbound.Answer(w, status, document)
}

// done writes a response without a body.
func done(w http.ResponseWriter, status int) error {
	w.WriteHeader(status)
	return nil
}

// decode reads the first JSON value in a request's body. As in ONAP, content
// after it and unknown fields are ignored. For an empty body it returns the
// given error. For invalid JSON or a value of the wrong type, it returns a 422.
func decode[T any](r *http.Request, empty error) (T, error) {
	document, err := io.ReadAll(io.LimitReader(r.Body, northbound.MaxDocument+1))
	if err != nil {
		var none T
		return none, err
	}
	return decodeDocument[T](document, empty)
}

// decodeDocument does the same with a document that is a part of the body.
func decodeDocument[T any](document []byte, empty error) (T, error) {
	var none, out T
	if len(document) > northbound.MaxDocument {
		return none, nf.E(nf.TooLarge, "read", "the request", fmt.Errorf("a document is larger than %d bytes", northbound.MaxDocument))
	}
	err := json.NewDecoder(strings.NewReader(string(document))).Decode(&out)
	switch {
	case errors.Is(err, io.EOF):
		return none, empty
	case err != nil:
		return none, refuse(http.StatusUnprocessableEntity, jsonText("", document, err))
	}
	return out, nil
}

// jsonText describes the error of an invalid document, which may be the value
// of a field.
func jsonText(field string, document []byte, err error) string {
	if inner, message, ok := syntax.Mismatch(err); ok {
		path := strings.Trim(field+"."+inner, ".")
		return cmp.Or(path, "the document") + ": " + message
	}
	if line, column, message := syntax.JSON(document); message != "" {
		return fmt.Sprintf("the document is not JSON: line %d, column %d: %s", line, column, message)
	}
	return "the document cannot be read"
}
