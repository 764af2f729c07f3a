package native

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// read reads a request's document and the key that the request has.
func read[T any](a *API, r *http.Request) (T, nf.RequestKey, error) {
	var none T
	document, err := io.ReadAll(r.Body)
	if err != nil {
		return none, nf.RequestKey{}, err
	}
	return decode[T](a, r, document)
}

// readIfAny does the same for a request that may have no document: that is an
// empty one.
func readIfAny[T any](a *API, r *http.Request) (T, nf.RequestKey, error) {
	var none T
	document, err := io.ReadAll(r.Body)
	if err != nil {
		return none, nf.RequestKey{}, err
	}
	if len(bytes.TrimSpace(document)) == 0 {
		document = []byte("{}")
	}
	return decode[T](a, r, document)
}

func decode[T any](a *API, r *http.Request, document []byte) (T, nf.RequestKey, error) {
	value, err := northbound.DecodeDocument[T](r, document)
	if err != nil {
		return value, nf.RequestKey{}, err
	}
	if !keyed(r) {
		return value, nf.RequestKey{}, nil
	}
	var content any // of the document only what it says counts, not how it is written
	if err := json.Unmarshal(document, &content); err != nil {
		return value, nf.RequestKey{}, fmt.Errorf("cannot tell what the request says: %w", err)
	}
	key, err := a.key(r, content)
	return value, key, err
}

const keyHeader = "Idempotency-Key"

// keyed reports whether a request has a key for being repeated.
func keyed(r *http.Request) bool { return len(r.Header.Values(keyHeader)) > 0 }

// key returns the key that a request has for being repeated, the zero one when
// it has none. The content is what the request says beside its method and path.
func (a *API) key(r *http.Request, content any) (nf.RequestKey, error) {
	given := r.Header.Values(keyHeader)
	switch {
	case len(given) == 0:
		return nf.RequestKey{}, nil
	case len(given) > 1 || given[0] == "":
		return nf.RequestKey{}, invalid(keyHeader, "must be given once and not be empty")
	}
	canonical, err := json.Marshal(content)
	if err != nil {
		return nf.RequestKey{}, fmt.Errorf("cannot tell what the request says: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s\n", r.Method, strings.TrimSuffix(r.URL.Path, "/"))
	_, _ = hash.Write(canonical) // never fails
	key := nf.RequestKey{Key: given[0], Digest: "sha256:" + hex.EncodeToString(hash.Sum(nil))}
	if who, known := nf.IdentityOf(r.Context()); known {
		key.Client = who.String()
	}
	return key, nil
}

// repeats reports whether a record was made by a request with the same key. Of
// a request that nobody is known to make, the record may say that nobody made it.
func repeats(made, asked nf.RequestKey) bool {
	if asked.Client == "" && made.Client == nf.Anonymous().String() {
		made.Client = ""
	}
	return made.Same(asked)
}

// manner is how an operation is to be carried out, as requests say it.
type manner struct {
	OnFailure     nf.OnFailure `json:"onFailure"`
	OnUnreachable string       `json:"on_unreachable"` // fail or wait
	Timeout       any          `json:"timeout"`        // a text or a number of seconds
	Confirm       string       `json:"confirm"`
	Wait          string       `json:"wait"` // ready or applied
}

const (
	wait        = "wait"    // of on_unreachable
	waitApplied = "applied" // of wait

	claimsDelete = "delete" // of claims
)

func mannerOf(p patch) manner {
	return manner{
		OnFailure: nf.OnFailure(p.text("onFailure")), OnUnreachable: p.text("on_unreachable"),
		Timeout: p["timeout"], Confirm: p.text("confirm"), Wait: p.text("wait"),
	}
}

// options returns the options that a request makes.
func (a *API) options(r *http.Request, m manner, key nf.RequestKey) (nf.Options, error) {
	timeout, err := duration(m.Timeout)
	if err != nil {
		return nf.Options{}, err
	}
	return nf.Options{
		OnFailure: m.OnFailure, Timeout: timeout, Patient: m.OnUnreachable == wait, NoWait: m.Wait == waitApplied, Confirm: m.Confirm,
		Key: key, Trace: a.cfg.Trace(r),
	}, nil
}

var traceForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceparent returns the request's trace context, or "" when it has none that
// W3C would know.
func traceparent(r *http.Request) string {
	text := r.Header.Get("Traceparent")
	if !traceForm.MatchString(text) {
		return ""
	}
	return text
}

// duration reads a timeout: nothing, a text such as 10m or 600, or a number of
// seconds.
func duration(v any) (time.Duration, error) {
	const must = "must be a duration such as 10m, or a number of seconds, of at most 24h"
	var d time.Duration
	switch v := v.(type) {
	case nil:
		return 0, nil
	case float64:
		d = time.Duration(v) * time.Second
	case string:
		var err error
		if d, err = time.ParseDuration(v); err != nil {
			seconds, err := strconv.ParseUint(v, 10, 32)
			if err != nil {
				return 0, invalid("timeout", must)
			}
			d = time.Duration(seconds) * time.Second
		}
	}
	if d <= 0 || d > nf.MaxTimeout {
		return 0, invalid("timeout", must)
	}
	return d, nil
}
