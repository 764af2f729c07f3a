package script

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// Repeated is a header that Persistent adds to the response to a request that it has
	// sent more than once. An earlier attempt may have had an effect.
	Repeated = "Simulator-Repeated"

	repeatTime     = 5 * time.Minute
	repeatInterval = 50 * time.Millisecond
)

// Persistent sends a request again while there is no whole response, as a client does whose
// server is started again: for five minutes, after which its error is the last one. Its
// client must be able to read the body of a request again.
type Persistent struct{ Transport http.RoundTripper }

// RoundTrip implements http.RoundTripper. The body of the response is in memory.
func (p Persistent) RoundTrip(req *http.Request) (*http.Response, error) {
	for began, attempts := time.Now(), 1; ; attempts++ {
		resp, err := p.send(req)
		if err == nil {
			if attempts > 1 {
				resp.Header.Set(Repeated, "true")
			}
			return resp, nil
		}
		if time.Since(began) > repeatTime || !Hold(req.Context(), nil, repeatInterval) {
			return nil, fmt.Errorf("cannot send %s %s in %d attempts: %w", req.Method, req.URL.Path, attempts, err)
		}
	}
}

// send sends a copy of the request, and reads the whole response.
func (p Persistent) send(req *http.Request) (*http.Response, error) {
	attempt := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("cannot read the body again: %w", err)
		}
		attempt.Body = body
	}
	resp, err := p.Transport.RoundTrip(attempt)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the request
	}
	content, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it has been read
	if err != nil {
		return nil, fmt.Errorf("cannot read the response: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(content))
	return resp, nil
}
