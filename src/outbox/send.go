package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	sendTime = 10 * time.Second // for one request, with its redirects and the answer
	dialTime = 5 * time.Second

	pingAfter   = 10 * time.Second // without data on a connection that is used
	pingTimeout = 5 * time.Second

	maxAnswer = 4 << 10 // bytes read of a response body, which is ignored
	maxHops   = 3       // redirects that one request follows
)

// The headers that every request has in addition to its own.
const (
	// DeliveryHeader is the delivery's id, which is the same in each attempt.
	DeliveryHeader = "X-K8splugin-Delivery"
	// TimestampHeader is the time at which a signed request was sent, in Unix
	// seconds.
	TimestampHeader = "X-K8splugin-Timestamp"
	// SignatureHeader is "sha256=" and the hexadecimal HMAC-SHA256, keyed with
	// the request's secret, of the timestamp, a dot, and the body.
	SignatureHeader = "X-K8splugin-Signature"
)

// Send sends a request and returns the status of the response, whatever it is.
// It returns an error if the request ended without one. The status is then that
// of the last redirect, or 0 if the target did not respond at all.
type Send func(ctx context.Context, r Request) (status int, err error)

// SendConfig configures a Send over HTTP. Noun is required.
type SendConfig struct {
	Hosts   outbound.Hosts
	Noun    string        // the name of a request in errors
	Timeout time.Duration // of a request, with its redirects and the answer; default 10 s

	// Via sends the requests instead of Transport. It must connect to allowed hosts only.
	Via http.RoundTripper

	// TLS returns how to verify the server, and the client's certificate. It is called
	// for each connection. Default: the CAs of the system, and no certificate.
	TLS func(context.Context) *tls.Config
}

// NewSend returns NewHTTPSend without options.
func NewSend(h outbound.Hosts, noun string) Send {
	return NewHTTPSend(SendConfig{Hosts: h, Noun: noun})
}

// NewHTTPSend returns a function that sends over HTTP, and connects only to allowed
// hosts. It does not use a proxy, because the proxy would make the connection
// instead. It follows redirects to allowed hosts if they keep the method. An error does
// not repeat the URL, or any text that the target sent.
func NewHTTPSend(cfg SendConfig) Send {
	s := &sender{hosts: cfg.Hosts, noun: cfg.Noun, timeout: cmp.Or(cfg.Timeout, sendTime), transport: cfg.Via}
	if cfg.Via == nil {
		s.transport = cfg.Transport()
	}
	return s.send
}

// Transport returns a transport that connects only to allowed hosts.
func (c SendConfig) Transport() *http.Transport {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := c.Hosts.Dial(ctx, dialTime, network, address)
		if err != nil {
			return nil, fmt.Errorf("cannot reach the target: %w", err)
		}
		return conn, nil
	}
	out := &http.Transport{
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        time.Minute,
		TLSHandshakeTimeout:    dialTime,
		MaxResponseHeaderBytes: 64 << 10,
		// Without pings, a connection to a host that is gone would be used until TCP gives up.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if c.TLS != nil {
		out.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			plain, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			config := c.TLS(ctx).Clone()
			config.ServerName, _, _ = net.SplitHostPort(address) // dial has split it
			return secured(ctx, plain, config)
		}
	}
	return out
}

// secured makes a connection one of TLS, or closes it.
func secured(ctx context.Context, plain net.Conn, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn := tls.Client(plain, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close() // the handshake's error says more
		return nil, fmt.Errorf("cannot reach the target: %w", err)
	}
	return conn, nil
}

// sender sends requests over HTTP.
type sender struct {
	hosts     outbound.Hosts
	noun      string
	timeout   time.Duration
	transport http.RoundTripper
}

func (s *sender) send(ctx context.Context, r Request) (int, error) {
	status, err := s.do(ctx, r)
	if err != nil {
		return status, fmt.Errorf("cannot %s the %s: %w", strings.ToLower(r.Method), s.noun, err)
	}
	return status, nil
}

func (s *sender) do(ctx context.Context, r Request) (int, error) {
	if err := s.hosts.Check(r.URL); err != nil {
		return 0, fmt.Errorf("its URL %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return 0, errors.New("its method or URL is not valid")
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	redirected := 0
	client := http.Client{Timeout: s.timeout, Transport: s.transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		redirected = req.Response.StatusCode
		return s.follow(req, via)
	}}
	resp, err := client.Do(req)
	if err != nil {
		return redirected, cause(err)
	}
	defer resp.Body.Close()
	// Reading the body allows reuse of the connection; a longer body closes it.
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	return resp.StatusCode, nil
}

var errRedirect = errors.New("its redirect")

// follow prepares the next request of a redirect, or returns an error. Another
// target gets no header that may hold a credential.
func (s *sender) follow(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	if req.Method != first.Method {
		return http.ErrUseLastResponse // following it with GET would not deliver the body
	}
	if len(via) > maxHops {
		return fmt.Errorf("%w is one of more than %d", errRedirect, maxHops)
	}
	if last.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w leads from https to http", errRedirect)
	}
	if err := s.hosts.Check(req.URL.String()); err != nil {
		return fmt.Errorf("%w %w", errRedirect, err)
	}
	req.Header.Del("Referer") // the previous URL, whose query may hold a token
	if target(req.URL) != target(first.URL) {
		maps.DeleteFunc(req.Header, func(name string, _ []string) bool {
			return !slices.Contains([]string{"Accept", "Content-Type", "User-Agent", DeliveryHeader, TimestampHeader, SignatureHeader}, name)
		})
	}
	return nil
}

// target returns the scheme, host and port of a URL.
func target(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(outbound.Name(u.Hostname()), port)
}

// cause returns the cause of a request that ended without a response. It
// replaces texts that may quote the target: a user could name any service of the
// network as a target, and read its data in the error.
func cause(err error) error {
	if errors.Is(err, errRedirect) || errors.Is(err, outbound.ErrNotAllowed) || outbound.Reason(err) != "" {
		return outbound.Plain(err)
	}
	return errors.New("the target sent no valid HTTP response")
}

// send sends a request with its own headers and those of every request.
func (o *Outbox) send(ctx context.Context, id string, r Request) (int, error) {
	header := map[string]string{"User-Agent": "k8splugin"}
	for name, value := range r.Header {
		header[http.CanonicalHeaderKey(name)] = value
	}
	header[DeliveryHeader] = id
	if len(r.Secret) > 0 {
		header[TimestampHeader] = strconv.FormatInt(o.now().Unix(), 10)
		header[SignatureHeader] = Sign(r.Secret, header[TimestampHeader], r.Body)
	}
	r.Header = header
	return o.cfg.Send(ctx, r)
}

// Sign returns the value of SignatureHeader.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(append([]byte(timestamp), '.')) // never fails
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
