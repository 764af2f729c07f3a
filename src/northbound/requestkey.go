package northbound

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const keyHeader = "Idempotency-Key"

// Keyed reports whether a request has an idempotency key.
func Keyed(r *http.Request) bool { return len(r.Header.Values(keyHeader)) > 0 }

// CheckKey returns nf.Invalid for an empty or repeated idempotency key.
func CheckKey(r *http.Request) error {
	if given := r.Header.Values(keyHeader); len(given) > 1 || len(given) == 1 && given[0] == "" {
		return unreadable(nf.Violations{{Field: keyHeader, Message: "must be given at most once and not be empty"}})
	}
	return nil
}

// RequestKey returns the idempotency key of a request, or the zero value. The content is
// the content of the request other than its method and path.
func RequestKey(r *http.Request, content any) (nf.RequestKey, error) {
	canonical, err := json.Marshal(content)
	if err != nil {
		return nf.RequestKey{}, fmt.Errorf("cannot compute the digest of the request: %w", err)
	}
	return KeyOf(r, func(w io.Writer) error {
		_, err := w.Write(canonical)
		return err
	})
}

// KeyOf does the same. Say writes the content of the request to a hash, which never
// fails.
func KeyOf(r *http.Request, say func(io.Writer) error) (nf.RequestKey, error) {
	if err := CheckKey(r); err != nil || !Keyed(r) {
		return nf.RequestKey{}, err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s\n", r.Method, strings.TrimSuffix(r.URL.Path, "/"))
	if err := say(hash); err != nil {
		return nf.RequestKey{}, fmt.Errorf("cannot compute the digest of the request: %w", err)
	}
	key := nf.RequestKey{Key: r.Header.Get(keyHeader), Digest: "sha256:" + hex.EncodeToString(hash.Sum(nil))}
	if who, known := nf.IdentityOf(r.Context()); known {
		key.Client = who.Client()
	}
	return key, nil
}

var traceForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Traceparent returns a request's trace context, or "" if it is missing or not valid for
// W3C.
func Traceparent(r *http.Request) string {
	text := r.Header.Get("Traceparent")
	if !traceForm.MatchString(text) {
		return ""
	}
	return text
}
