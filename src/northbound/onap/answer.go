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

// Texts that clients look for: ONAP's errors named its database.
const (
	noDocuments = "Error finding master table: mongo: no documents in result"
	noObjects   = "Did not find any objects with tag: " // and the tag
)

// refusal is an error in ONAP's words: a line of text under a status.
type refusal struct {
	status int // as released versions of ONAP have it
	strict int // with Config.Strict
	text   string
	cause  error // whose kind is logged and recorded
}

// Error returns what the client is told.
func (e *refusal) Error() string { return e.text }

// Unwrap returns the cause.
func (e *refusal) Unwrap() error { return e.cause }

// refuse returns the refusal of a wrong request: the status is the same in both
// styles.
func refuse(status int, text string) error {
	return &refusal{status: status, strict: status, text: text, cause: nf.E(nf.Invalid, "read", "the request", errors.New(text))}
}

// fail returns the refusal of what could not be done: 500 as ONAP has it, the
// status of the error's kind in the strict style. The text is "what: cause",
// where the cause of nf.NotFound is the text that clients look for, and that of
// nf.Internal is not told. An error that is a refusal already stays as it is,
// with what before its text.
func fail(what string, err error) error {
	cause := causeText(err)
	if e, ok := errors.AsType[*refusal](err); ok {
		return &refusal{status: e.status, strict: e.strict, text: prefix(what, e.text), cause: e.cause}
	}
	return failAs(prefix(what, cause), err)
}

// failAs is fail with the whole text.
func failAs(text string, err error) error {
	e := &refusal{status: http.StatusInternalServerError, strict: northbound.Status(err), text: text, cause: err}
	switch nf.KindOf(err) {
	case nf.Unauthenticated, nf.Forbidden, nf.TooMany, nf.TooLarge:
		e.status = e.strict // ONAP knew nothing of them
	default:
	}
	return e
}

// onlyIf tells an error of the kind by the text, and every other one by fail.
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

// causeText returns what an error's cause is called.
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

// handle answers with the error of a handler as a line of text.
func (a *API) handle(h northbound.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			a.tell(w, r, err)
		}
	})
}

// tell writes an error down as a line of text.
func (a *API) tell(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		e, _ = errors.AsType[*refusal](fail("", err))
	}
	// The shell's own refusal is logged, measured and recorded; only its answer
	// is of no use here.
	unread := unread{http.Header{}}
	northbound.Refuse(unread, r, e.cause)
	if after := unread.header.Get("Retry-After"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	status := e.status
	if a.cfg.Strict {
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

// unread takes an answer that nobody gets.
type unread struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u unread) Header() http.Header { return u.header }

// Write implements http.ResponseWriter.
func (unread) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (unread) WriteHeader(int) {}

// answer answers with one JSON value and a newline.
func answer(w http.ResponseWriter, status int, document any) error {
	return northbound.Answer(w, status, document)
}

// done answers without a body.
func done(w http.ResponseWriter, status int) error {
	w.WriteHeader(status)
	return nil
}

// decode reads the first JSON value in a request's body. As in ONAP, neither
// what follows it nor a field that nobody knows is an error. A body that is
// empty is the error given; one that is not JSON, or has a value of the wrong
// type, is a 422.
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

// jsonText says what is wrong with a document that cannot be read, which may be
// that of a field.
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
