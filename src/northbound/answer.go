package northbound

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Handler answers a request, or returns the error that it is refused with. It
// must not return an error when it has begun to answer.
type Handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP calls the handler and refuses the request with its error.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		Refuse(w, r, err)
	}
}

// Answer answers with a JSON document.
func Answer(w http.ResponseWriter, status int, document any) error {
	return respond(w, status, "application/json", document)
}

func respond(w http.ResponseWriter, status int, media string, document any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	header := w.Header()
	header.Set("Content-Type", media)
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client went away: there is nobody to tell
	return nil
}
