package chartsource

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Config configures a Source.
type Config struct {
	// Allow are the hosts to which requests may be sent: "registry.example.com"
	// or "*.example.com", each with or without ":port". Hosts that a registry
	// or a repository refers to must be among them, too. Empty: nothing can be
	// fetched.
	Allow []string
	// PlainHTTP are the patterns, as in Allow, of hosts that may be accessed
	// without TLS. They must also be in Allow.
	PlainHTTP []string

	Roots   *x509.CertPool // certificate authorities; default: the system's
	Limit   int64          // maximum bytes of an archive; default 64 MiB
	Timeout time.Duration  // of one fetch; default 2 min
}

// ChartRef identifies a chart to fetch.
type ChartRef struct {
	// URL is oci://host/path/name, the URL of a chart repository
	// (https://host/path), or the URL of an archive in one.
	URL string
	// Name is the chart's name in a repository. In a registry it is appended to
	// the URL.
	Name string
	// Version is a version or a range, of which the highest version is used. If
	// it is empty, the highest release is used. In a registry it may also be a
	// tag or the digest of a manifest.
	Version string
	// Digest is the required SHA-256 of the archive or, in a registry, of its
	// manifest: 64 hexadecimal digits, with or without the prefix "sha256:".
	Digest string
	// Archive says that the URL is that of an archive, whatever its name. It must not
	// begin with oci://, and there is no Name.
	Archive bool

	Username string
	Password nf.Secret // a token if there is no Username
}

// Chart describes a fetched chart.
type Chart struct {
	Digest  string // "sha256:<hex>" of the archive
	Version string // as the source names it; empty: unknown
	Source  string // URL of the archive or manifest, without credentials
}

// Source fetches charts. It is safe for concurrent use.
type Source struct {
	cfg    Config
	allow  hosts
	plain  hosts
	client *http.Client

	// reading serializes the parsing of indexes, each of which takes many times
	// its size in memory.
	reading sync.Mutex
}

const (
	defaultLimit   = 64 << 20
	defaultTimeout = 2 * time.Minute
	maxRedirects   = 5
)

// New returns a source, or an error that names an invalid host pattern.
func New(cfg Config) (*Source, error) {
	if cfg.Limit == 0 {
		cfg.Limit = defaultLimit
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	s := &Source{cfg: cfg}
	var err error
	if s.allow, err = parseHosts(cfg.Allow); err != nil {
		return nil, err
	}
	if s.plain, err = parseHosts(cfg.PlainHTTP); err != nil {
		return nil, err
	}
	s.client = &http.Client{
		Transport: gate{s, &http.Transport{
			DialContext:           s.dial,
			TLSClientConfig:       &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: 30 * time.Second,
			IdleConnTimeout:       30 * time.Second,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // archives must stay compressed, whatever their Content-Encoding
		}},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errRedirects
			}
			return nil
		},
	}
	return s, nil
}

var errRedirects = fmt.Errorf("it redirects more than %d times", maxRedirects)

// Fetch passes the archive of a chart to into, with ctx; into reads it to its end.
// Fetch does not check that this is a gzipped tar. If it fails after that, the
// archive must not be used. It returns the errors of into; nf.Invalid for an
// invalid reference and for an archive with another digest; nf.Forbidden for a
// host that is not allowed; nf.NotFound; nf.TooLarge; nf.Timeout or
// nf.Cancelled if the context ends; and nf.Unreachable, with the reason
// "unauthorized" or "forbidden" if the source rejects the credentials.
func (s *Source) Fetch(ctx context.Context, ref ChartRef, into func(context.Context, io.Reader) error) (Chart, error) {
	subject := "chart " + shown(ref.URL)
	if ref.Archive {
		subject = shown(ref.URL)
	}
	want, err := ref.parse()
	if err != nil {
		return Chart{}, nf.E(nf.Invalid, "fetch", subject, err)
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	get := s.fromRepository
	if want.url.Scheme == "oci" {
		get = s.fromRegistry
	}
	to := &receiver{into: func(archive io.Reader) error { return into(ctx, archive) }} // ctx outlasts the fetch
	c, err := get(limited, want, to)
	if err != nil {
		return Chart{}, fail(ctx, subject, err)
	}
	c.Digest = to.digest
	if want.Digest != "" && want.Digest != c.Digest && want.Digest != c.manifest {
		return Chart{}, nf.E(nf.Invalid, "fetch", subject, differs(want.Digest, c.Digest))
	}
	return c.Chart, nil
}

// receiver passes an archive on and computes its digest.
type receiver struct {
	into   func(io.Reader) error
	digest string // "sha256:<hex>"; empty until the archive was received
}

func (r *receiver) receive(archive io.Reader) error {
	sum := sha256.New()
	if err := r.into(io.TeeReader(archive, sum)); err != nil {
		return err
	}
	r.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return nil
}

// fetched is a chart with the digest of its manifest, if it has one.
type fetched struct {
	Chart

	manifest string
}

// differs returns the error for an archive with another digest than the
// requested one.
func differs(wanted, is string) error {
	return nf.Violations{{Field: "chart.digest", Message: fmt.Sprintf("is %s, but the digest of the fetched chart is %s", wanted, is)}}
}

// wanted is a parsed reference.
type wanted struct {
	ChartRef // its Digest is "sha256:<hex>" or empty

	url *url.URL
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (r ChartRef) parse() (wanted, error) {
	wrong := func(field, message string) error { return nf.Violations{{Field: "chart." + field, Message: message}} }
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return wanted{}, wrong("url", "is not a URL such as oci://host/charts/name or https://host/charts")
	case u.Scheme != "oci" && u.Scheme != "https" && u.Scheme != "http":
		return wanted{}, wrong("url", "must begin with oci://, https:// or http://")
	case r.Archive && (u.Scheme == "oci" || r.Name != ""):
		return wanted{}, wrong("url", "must be that of an archive, and begin with https:// or http://")
	case u.User != nil:
		return wanted{}, wrong("url", "contains a user or password; use the fields username and password")
	case u.Fragment != "" || u.Scheme == "oci" && u.RawQuery != "":
		return wanted{}, wrong("url", "contains a query or fragment")
	case r.Username != "" && len(r.Password) == 0:
		return wanted{}, wrong("password", "is missing")
	case strings.Contains(r.Username, ":"):
		return wanted{}, wrong("username", "contains a colon")
	case strings.ContainsAny(r.Username+string(r.Password), "\r\n\x00"):
		return wanted{}, wrong("password", "or the user name contains a line break")
	}
	if r.Digest != "" {
		r.Digest = "sha256:" + strings.TrimPrefix(strings.ToLower(r.Digest), "sha256:")
		if !digestPattern.MatchString(r.Digest) {
			return wanted{}, wrong("digest", "is not a SHA-256 in hexadecimal digits")
		}
	}
	return wanted{r, u}, nil
}

// shown returns a URL in a form that is safe to show: without credentials, and
// without a query, which may contain some.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// check returns nf.TooLarge if a size exceeds the limit.
func check(size, limit int64) error {
	if size > limit {
		return nf.E(nf.TooLarge, "read", "the response", fmt.Errorf("it is larger than %d bytes", limit))
	}
	return nil
}

var errCredentials = errors.New("it rejected the credentials, or requires credentials")
