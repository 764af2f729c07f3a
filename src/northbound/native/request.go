package native

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
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
	if !northbound.Keyed(r) {
		return value, nf.RequestKey{}, nil
	}
	var content any // the key depends on the content, not on the formatting
	if err := json.Unmarshal(document, &content); err != nil {
		return value, nf.RequestKey{}, fmt.Errorf("cannot compute the digest of the request: %w", err)
	}
	key, err := northbound.RequestKey(r, content)
	return value, key, err
}

// chosen returns the options in a query for the digest of a key. It returns nil if all
// have their defaults, so that the key is as in earlier releases.
func chosen[T comparable](options T) any {
	var defaults T
	if options == defaults {
		return nil
	}
	return options
}

// keyWith returns the key of a request that has a document and chosen options.
func keyWith(r *http.Request, key nf.RequestKey, options any) (nf.RequestKey, error) {
	if key.Key == "" || options == nil {
		return key, nil
	}
	return northbound.RequestKey(r, []any{key.Digest, options})
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
	return northbound.KeyOf(r, func(w io.Writer) error {
		_, _ = w.Write(bytes.TrimSuffix(document, []byte(end)))
		text := base64.NewEncoder(base64.StdEncoding, w)
		_, err := io.Copy(text, io.NewSectionReader(archive, 0, archive.Size()))
		_ = text.Close()
		_, _ = io.WriteString(w, end)
		return err
	})
}

// repeats reports whether a record was made by a request with the same key. A
// request without an identity also matches a record of the anonymous identity.
func repeats(made, asked nf.RequestKey) bool {
	if asked.Client == "" && made.Client == nf.Anonymous().Client() {
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
