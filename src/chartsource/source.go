package chartsource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Config says what may be fetched, and how.
type Config struct {
	// Allow are the hosts that may be asked: "registry.example.com",
	// "*.example.com", each with or without ":port". What a registry or a
	// repository leads to must be among them, too. Empty: nothing may be fetched.
	Allow []string
	// PlainHTTP are those of them that are asked without TLS, likewise.
	PlainHTTP []string

	Roots   *x509.CertPool // authorities that vouch for hosts; default: the system's
	Limit   int64          // bytes of an archive; default 64 MiB
	Timeout time.Duration  // of one fetch; default 2 min
}

// ChartRef says which chart is wanted.
type ChartRef struct {
	// URL is oci://host/path/name, that of a chart repository (https://host/path),
	// or that of an archive in one.
	URL string
	// Name is the chart's name in a repository; below the URL, in a registry.
	Name string
	// Version is a version or a range of them; the highest one in it is taken, and
	// the highest release when it is empty. In a registry it may also be a tag or
	// the digest of a manifest.
	Version string
	// Digest is the SHA-256 that the archive must have, or in a registry its
	// manifest: 64 hexadecimal digits, with or without "sha256:" before them.
	Digest string

	Username string
	Password nf.Secret // a token when there is no Username
}

// Chart is a chart as it was fetched.
type Chart struct {
	Archive []byte // a gzipped tar, if its source is to be believed
	Digest  string // "sha256:<hex>" of the archive
	Version string // as its source calls it; empty: it did not say
	Source  string // where it came from, without credentials
}

// Source fetches charts. It is safe for concurrent use.
type Source struct {
	cfg    Config
	allow  hosts
	plain  hosts
	client *http.Client

	// reading is held while an index is read: that takes many times its size.
	reading sync.Mutex
}

const (
	defaultLimit   = 64 << 20
	defaultTimeout = 2 * time.Minute
	maxRedirects   = 5
)

// New returns a source, or says which of the hosts is none.
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
			DisableCompression:    true, // an archive is wanted as it is, whatever is said of its encoding
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

var errRedirects = fmt.Errorf("it leads from one address to the next, more than %d times", maxRedirects)

// Fetch returns a chart. Its errors are nf.Invalid for a reference that is none,
// and for an archive whose digest is another; nf.Forbidden for a host that is not
// allowed; nf.NotFound; nf.TooLarge; and nf.Unreachable, whose reason is
// "unauthorized" or "forbidden" when the source does not take the credentials.
func (s *Source) Fetch(ctx context.Context, ref ChartRef) (Chart, error) {
	subject := "chart " + shown(ref.URL)
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
	c, err := get(limited, want)
	if err != nil {
		return Chart{}, fail(ctx, subject, err)
	}
	c.Digest = digestOf(c.Archive)
	if want.Digest != "" && want.Digest != c.Digest && want.Digest != c.manifest {
		return Chart{}, nf.E(nf.Invalid, "fetch", subject, differs(want.Digest, c.Digest))
	}
	return c.Chart, nil
}

// fetched is a chart, and the digest of its manifest when it has one.
type fetched struct {
	Chart

	manifest string
}

// differs says that a digest is not the one that was asked for.
func differs(wanted, is string) error {
	return nf.Violations{{Field: "chart.digest", Message: fmt.Sprintf("is %s, but that of what was fetched is %s", wanted, is)}}
}

// wanted is a reference that was understood.
type wanted struct {
	ChartRef // whose Digest is "sha256:<hex>" or empty

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
		return wanted{}, wrong("url", "begins with none of oci://, https:// and http://")
	case u.User != nil:
		return wanted{}, wrong("url", "holds a user or password, which have fields of their own")
	case u.Fragment != "" || u.Scheme == "oci" && u.RawQuery != "":
		return wanted{}, wrong("url", "holds a query or fragment")
	case r.Username != "" && len(r.Password) == 0:
		return wanted{}, wrong("password", "is missing")
	case strings.Contains(r.Username, ":"):
		return wanted{}, wrong("username", "holds a colon")
	case strings.ContainsAny(r.Username+string(r.Password), "\r\n\x00"):
		return wanted{}, wrong("password", "holds a line break, or the user name does")
	}
	if r.Digest != "" {
		r.Digest = "sha256:" + strings.TrimPrefix(strings.ToLower(r.Digest), "sha256:")
		if !digestPattern.MatchString(r.Digest) {
			return wanted{}, wrong("digest", "is not a SHA-256 in hexadecimal digits")
		}
	}
	return wanted{r, u}, nil
}

// shown is a URL as it may be told: without credentials, and without a query,
// which may hold some.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// check returns why what a source says of a size is too much.
func check(size, limit int64) error {
	if size > limit {
		return nf.E(nf.TooLarge, "read", "the answer", fmt.Errorf("it is larger than %d bytes", limit))
	}
	return nil
}

var errCredentials = errors.New("it does not take the credentials, or wants some")
