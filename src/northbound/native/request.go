package native

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// read decodes a request's document and returns its idempotency key.
func read[T any](r *http.Request) (T, nf.RequestKey, error) {
	return readOr[T](r, "")
}

// readIfAny does the same for a request that may have no body, which counts as
// an empty object.
func readIfAny[T any](r *http.Request) (T, nf.RequestKey, error) {
	return readOr[T](r, "{}")
}

// readOr does the same with a document that replaces an empty body.
func readOr[T any](r *http.Request, otherwise string) (T, nf.RequestKey, error) {
	document, err := io.ReadAll(r.Body)
	if err != nil {
		var none T
		return none, nf.RequestKey{}, err
	}
	if len(bytes.TrimSpace(document)) == 0 {
		document = []byte(otherwise)
	}
	return decode[T](r, document)
}

func decode[T any](r *http.Request, document []byte) (T, nf.RequestKey, error) {
	value, err := northbound.DecodeDocument[T](r, document)
	if err != nil {
		return value, nf.RequestKey{}, err
	}
	if !keyed(r) {
		return value, nf.RequestKey{}, nil
	}
	var content any // the key depends on the content, not on the formatting
	if err := json.Unmarshal(document, &content); err != nil {
		return value, nf.RequestKey{}, fmt.Errorf("cannot compute the digest of the request: %w", err)
	}
	key, err := requestKey(r, content)
	return value, key, err
}

const keyHeader = "Idempotency-Key"

// keyed reports whether a request has an idempotency key.
func keyed(r *http.Request) bool { return len(r.Header.Values(keyHeader)) > 0 }

// checkKey rejects an empty or repeated idempotency key.
func checkKey(r *http.Request) error {
	if given := r.Header.Values(keyHeader); len(given) > 1 || len(given) == 1 && given[0] == "" {
		return invalid(keyHeader, "must be given at most once and not be empty")
	}
	return nil
}

// requestKey returns the idempotency key of a request, or the zero value. The
// content is the content of the request other than its method and path.
func requestKey(r *http.Request, content any) (nf.RequestKey, error) {
	canonical, err := json.Marshal(content)
	if err != nil {
		return nf.RequestKey{}, fmt.Errorf("cannot compute the digest of the request: %w", err)
	}
	return keyOf(r, func(w io.Writer) error {
		_, err := w.Write(canonical)
		return err
	})
}

// archiveKey returns the key of a request whose content is an archive and the
// id and the project of its package. It reads the archive again, because a form may
// have the id after it.
func archiveKey(r *http.Request, p nf.Package, archive northbound.Staged) (nf.RequestKey, error) {
	document, err := json.Marshal([]string{p.ID, nf.ProjectOf(p.Project), ""})
	if err != nil {
		return nf.RequestKey{}, fmt.Errorf("cannot compute the digest of the request: %w", err)
	}
	const end = `"]` // the third string is the archive, which is not copied
	return keyOf(r, func(w io.Writer) error {
		_, _ = w.Write(bytes.TrimSuffix(document, []byte(end)))
		text := base64.NewEncoder(base64.StdEncoding, w)
		_, err := io.Copy(text, io.NewSectionReader(archive, 0, archive.Size()))
		_ = text.Close()
		_, _ = io.WriteString(w, end)
		return err
	})
}

// keyOf returns the key of a request. Say writes the content of the request to
// a hash, which never fails.
func keyOf(r *http.Request, say func(io.Writer) error) (nf.RequestKey, error) {
	if err := checkKey(r); err != nil || !keyed(r) {
		return nf.RequestKey{}, err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s\n", r.Method, strings.TrimSuffix(r.URL.Path, "/"))
	if err := say(hash); err != nil {
		return nf.RequestKey{}, fmt.Errorf("cannot compute the digest of the request: %w", err)
	}
	key := nf.RequestKey{Key: r.Header.Get(keyHeader), Digest: "sha256:" + hex.EncodeToString(hash.Sum(nil))}
	if who, known := nf.IdentityOf(r.Context()); known {
		key.Client = who.String()
	}
	return key, nil
}

// repeats reports whether a record was made by a request with the same key. A
// request without an identity also matches a record of the anonymous identity.
func repeats(made, asked nf.RequestKey) bool {
	if asked.Client == "" && made.Client == nf.Anonymous().String() {
		made.Client = ""
	}
	return made.Same(asked)
}

// executionOptionsOf returns the options in the query of a request without a
// body. The contract allows only those that the request has.
func executionOptionsOf(query url.Values) wire.Execution {
	opts := wire.Execution{
		OnFailure: nf.OnFailure(query.Get("on_failure")), OnUnreachable: query.Get("on_unreachable"),
		Confirm: query.Get("confirm"), Wait: query.Get("wait"),
	}
	if query.Has("timeout") {
		opts.Timeout = query.Get("timeout")
	}
	return opts
}

// readWith reads a request's document and returns it with its options.
func readWith[T any, P interface {
	*T
	Options() *wire.Execution
}](n runner, r *http.Request, from func(*http.Request) (T, nf.RequestKey, error)) (T, nf.Options, error) {
	body, key, err := from(r)
	if err != nil {
		return body, nf.Options{}, err
	}
	opts, err := n.options(r, *P(&body).Options(), key)
	return body, opts, err
}

// options returns the options of a request.
func (n runner) options(r *http.Request, m wire.Execution, key nf.RequestKey) (nf.Options, error) {
	timeout, err := duration(m.Timeout)
	if err != nil {
		return nf.Options{}, err
	}
	return nf.Options{
		OnFailure: m.OnFailure, Timeout: timeout, WaitForRegion: m.OnUnreachable == wire.OnUnreachableWait, NoWait: m.Wait == wire.WaitApplied, Confirm: m.Confirm,
		Check: m.Validate, Key: key, Trace: n.trace(r),
	}, nil
}

var traceForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceparent returns the request's trace context, or "" if it is missing or
// not valid for W3C.
func traceparent(r *http.Request) string {
	text := r.Header.Get("Traceparent")
	if !traceForm.MatchString(text) {
		return ""
	}
	return text
}

// duration parses a timeout: nil, a string such as "10m" or "600", or a number
// of seconds.
func duration(v any) (time.Duration, error) { return durationOf("timeout", v) }

// durationOf parses the duration in a field.
func durationOf(field string, v any) (time.Duration, error) {
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
				return 0, invalid(field, must)
			}
			d = time.Duration(seconds) * time.Second
		}
	}
	if d <= 0 || d > nf.MaxTimeout {
		return 0, invalid(field, must)
	}
	return d, nil
}
