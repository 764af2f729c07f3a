package northbound

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Handler answers a request, or returns an error that is answered as a problem.
// It must not return an error after it has started to write the response.
type Handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP calls the handler and answers its error with Refuse.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		Refuse(w, r, err)
	}
}

// Answer writes a JSON document as the response.
func Answer(w http.ResponseWriter, status int, document any) error {
	return respond(w, status, "application/json", document)
}

// NextLink returns the Link header (RFC 8288) of a page that another one follows, which the
// request's path has with the query.
func NextLink(r *http.Request, query url.Values) string {
	return fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), query.Encode())
}

func respond(w http.ResponseWriter, status int, media string, document any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	writeBody(w, status, media, body.Bytes())
	return nil
}

// AnswerEncoded writes JSON as the response. Answer would read and copy it once more.
func AnswerEncoded(w http.ResponseWriter, status int, document []byte) {
	writeBody(w, status, "application/json", document)
}

func writeBody(w http.ResponseWriter, status int, media string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", media)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a failure means that the client has disconnected
}
