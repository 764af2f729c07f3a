package sdc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	maxDocument     = 16 << 20 // bytes of a document of the catalog
	maxSmall        = 1 << 20  // bytes of the other documents
	documentTime    = time.Minute
	artifactTime    = 5 * time.Minute
	defaultArtifact = 64 << 20
)

// Config configures a client. URL, Consumer, Credentials, Transport and NewID are
// required.
type Config struct {
	URL         string // of SDC, without /sdc
	Consumer    string // X-ECOMP-InstanceID
	Credentials func(ctx context.Context) (user string, password nf.Secret)
	Transport   http.RoundTripper
	NewID       func() string // creates the ids of requests
	Limit       int64         // bytes of an artifact; 64 MiB by default
	Time        time.Duration // of a download; 5 min by default
}

// Client sends requests to SDC. It is safe for concurrent use.
type Client struct {
	cfg  Config
	base *url.URL
	http http.Client
}

// NewClient returns a client. It sends nothing.
func NewClient(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "":
		return nil, errors.New("cannot create a client of SDC: its URL must begin with http:// or https://, and contain a host and no user or query")
	case cfg.Consumer == "" || cfg.Credentials == nil || cfg.Transport == nil || cfg.NewID == nil:
		return nil, errors.New("cannot create a client of SDC: Consumer, Credentials, Transport and NewID are required")
	}
	if cfg.Limit <= 0 {
		cfg.Limit = defaultArtifact
	}
	if cfg.Time <= 0 {
		cfg.Time = artifactTime
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), ""
	return &Client{cfg: cfg, base: u, http: http.Client{Transport: cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // it would carry the credentials to another host
	}}}, nil
}

// KafkaTopics says where SDC sends notifications, and receives status messages.
type KafkaTopics struct {
	Brokers      string `json:"kafkaBootStrapServer"`
	Notification string `json:"distrNotificationTopicName"`
	Status       string `json:"distrStatusTopicName"`
}

// KafkaTopics returns where SDC sends notifications.
func (c *Client) KafkaTopics(ctx context.Context) (KafkaTopics, error) {
	var out KafkaTopics
	err := c.read(ctx, "distributionKafkaData", maxSmall, &out)
	if err == nil && (out.Notification == "" || out.Status == "") {
		err = nf.E(nf.Unreachable, "use", "the response of SDC", errors.New("it names no topics"))
	}
	return out, err
}

// ArtifactTypes returns the types of artifacts that SDC knows; none if it does not tell.
func (c *Client) ArtifactTypes(ctx context.Context) ([]string, error) {
	var out []string
	return out, nf.IgnoreNotFound(c.read(ctx, "artifactTypes", maxSmall, &out))
}

// Distributed returns the services that are distributed; none if there is none.
func (c *Client) Distributed(ctx context.Context) ([]Summary, error) {
	var out []Summary
	return out, nf.IgnoreNotFound(c.read(ctx, "catalog/services?distributionStatus=DISTRIBUTED", maxDocument, &out))
}

// Service returns the metadata of a version of a service, or nf.NotFound.
func (c *Client) Service(ctx context.Context, uuid string) (Metadata, error) {
	return c.metadata(ctx, "services", "service", uuid)
}

// Resource returns the metadata of a version of a resource, or nf.NotFound.
func (c *Client) Resource(ctx context.Context, uuid string) (Metadata, error) {
	return c.metadata(ctx, "resources", "resource", uuid)
}

func (c *Client) metadata(ctx context.Context, collection, noun, uuid string) (Metadata, error) {
	if uuid == "" || len(uuid) > maxName {
		return Metadata{}, nf.E(nf.NotFound, "get", noun+" of SDC", nil)
	}
	var out []Metadata
	if err := c.read(ctx, "catalog/"+collection+"/"+url.PathEscape(uuid)+"/metadata", maxDocument, &out); err != nil {
		return Metadata{}, err
	}
	if len(out) != 1 {
		return Metadata{}, nf.E(nf.NotFound, "get", fmt.Sprintf("%s %q of SDC", noun, uuid), nil)
	}
	return out[0], nil
}

// Download passes the content of an artifact to into, with ctx; into reads it to its
// end. The end is an error instead of io.EOF if the content has another checksum than
// the artifact, or is too large. If Download fails, the content must not be used. It
// returns nf.NotFound, nf.TooLarge, nf.Timeout, nf.Unreachable, nf.Invalid for an
// artifact without a path or a checksum, and errors of into.
func (c *Client) Download(ctx context.Context, a Artifact, into func(context.Context, io.Reader) error) error {
	subject := fmt.Sprintf("artifact %q of SDC", a.Name)
	at, err := c.pathOf(a.URL)
	if err != nil {
		return nf.E(nf.Invalid, "download", subject, err)
	}
	if !validChecksum(a.Checksum) {
		return nf.E(nf.Invalid, "download", subject, errors.New("SDC announces no checksum that is an MD5"))
	}
	limited, cancel := context.WithTimeout(ctx, c.cfg.Time)
	defer cancel()
	resp, err := c.send(limited, at, "application/octet-stream")
	if err != nil {
		return c.fail(ctx, limited, "download", subject, err)
	}
	defer resp.Body.Close()
	if resp.ContentLength > c.cfg.Limit {
		return nf.E(nf.TooLarge, "download", subject, errLarge(c.cfg.Limit))
	}
	if err := into(ctx, newChecked(resp.Body, a.Checksum, c.cfg.Limit)); err != nil {
		return c.fail(ctx, limited, "download", subject, err)
	}
	return nil
}

// pathOf returns the URL of a path that a notification has. Everything except a plain
// path of the catalog is an error, so that it cannot lead elsewhere.
func (c *Client) pathOf(text string) (*url.URL, error) {
	const catalog = "/sdc/v1/catalog/"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(text) > maxURL ||
		!strings.HasPrefix(u.Path, catalog) || path.Clean(u.Path) != u.Path || strings.ContainsAny(u.Path, "\\\x00") {
		return nil, errors.New("its URL is not a path of the catalog, which begins with " + catalog)
	}
	out := *c.base
	out.Path, out.RawPath = c.base.Path+u.Path, ""
	return &out, nil
}

// read reads the document at a path below /sdc/v1, of at most limit bytes.
func (c *Client) read(ctx context.Context, at string, limit int64, into any) error {
	subject := "/sdc/v1/" + at + " of SDC"
	u, err := url.Parse(c.base.String() + "/sdc/v1/" + at)
	if err != nil {
		return nf.E(nf.Invalid, "get", subject, errors.New("it is not a path"))
	}
	limited, cancel := context.WithTimeout(ctx, documentTime)
	defer cancel()
	resp, err := c.send(limited, u, "application/json")
	if err != nil {
		return c.fail(ctx, limited, "get", subject, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return c.fail(ctx, limited, "get", subject, err)
	}
	if int64(len(data)) > limit {
		return nf.E(nf.TooLarge, "get", subject, errLarge(limit))
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nf.E(nf.Unreachable, "get", subject, errors.New("the response is not the expected JSON document"))
	}
	return nil
}

// send returns a response with the status 200.
func (c *Client) send(ctx context.Context, u *url.URL, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("its URL is not valid")
	}
	user, password := c.cfg.Credentials(ctx)
	req.SetBasicAuth(user, string(password))
	req.Header.Set("Accept", accept)
	req.Header.Set("X-ECOMP-InstanceID", c.cfg.Consumer)
	req.Header.Set("X-ECOMP-RequestID", c.cfg.NewID())
	req.Header.Set("User-Agent", "k8splugin")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // its content does not matter
		return nil, refusal(resp.StatusCode)
	}
	return resp, nil
}

// refusal returns the error for a status.
func refusal(status int) error {
	e := &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "SDC", Reason: nf.ReasonUnavailable, Err: fmt.Errorf("it responded %d %s", status, http.StatusText(status))}
	switch {
	case status == http.StatusNotFound:
		e.Kind, e.Reason = nf.NotFound, ""
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Reason, e.Err = nf.ReasonUnauthorized, errors.New("it rejected the credentials of --sdc-user-file and --sdc-password-file")
	case status >= 300 && status < 400:
		e.Err = errors.New("it redirects, which is not followed")
	}
	return e
}

// fail returns an error with the kind of a failure. ctx is the caller's context, and
// limited has a timeout in addition.
func (c *Client) fail(ctx, limited context.Context, op, subject string, err error) error {
	e := &nf.Error{Op: op, Subject: subject}
	known, ok := errors.AsType[*nf.Error](err)
	switch {
	case ctx.Err() == nil && limited.Err() != nil:
		e.Kind, e.Reason, e.Err = nf.Unreachable, nf.ReasonTimeout, errors.New("the response takes too long")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Kind, e.Err = nf.Timeout, context.Cause(ctx)
	case ctx.Err() != nil:
		e.Kind, e.Err = nf.Cancelled, context.Cause(ctx)
	case ok:
		e.Kind, e.Reason, e.Err = known.Kind, known.Reason, err
	case nf.ViolationsOf(err) != nil:
		e.Kind, e.Err = nf.Invalid, err
	default:
		reason := outbound.Reason(err)
		if reason == "" {
			reason = nf.ReasonUnavailable
		}
		e.Kind, e.Reason, e.Err = nf.Unreachable, reason, outbound.Plain(err)
	}
	return e
}
