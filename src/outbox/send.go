package outbox

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	sendTime  = 10 * time.Second // for one request, with its redirects and the answer
	dialTime  = 5 * time.Second
	maxAnswer = 4 << 10 // bytes read of a response body, which is ignored
	maxHops   = 3       // redirects that one request follows
)

// The headers that every request has in addition to its own.
const (
	// DeliveryHeader is the delivery's id, which is the same in each attempt.
	DeliveryHeader = "X-K8splugin-Letter"
	// TimestampHeader is the time at which a signed request was sent, in Unix
	// seconds.
	TimestampHeader = "X-K8splugin-Timestamp"
	// SignatureHeader is "sha256=" and the hexadecimal HMAC-SHA256, keyed with
	// the request's secret, of the timestamp, a dot, and the body.
	SignatureHeader = "X-K8splugin-Signature"
)

// Send sends a request and returns the status of the response, whatever it is.
// It returns an error if there was no response.
type Send func(ctx context.Context, r Request) (status int, err error)

// NewSend returns a function that sends over HTTP, and connects only to allowed
// hosts. It does not use a proxy, because the proxy would make the connection
// instead. It follows redirects to allowed hosts if they keep the method. A
// request times out after 10 seconds. The noun is the name of a request in
// errors.
func NewSend(h outbound.Hosts, noun string) Send {
	client := &http.Client{
		Timeout: sendTime,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := h.Dial(ctx, dialTime, network, address)
				if err != nil {
					return nil, fmt.Errorf("cannot reach the callback: %w", err)
				}
				return conn, nil
			},
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        time.Minute,
			TLSHandshakeTimeout:    dialTime,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.Method != via[0].Method {
				return http.ErrUseLastResponse // following it with GET would not deliver the body
			}
			if len(via) > maxHops {
				return fmt.Errorf("it redirects more than %d times", maxHops)
			}
			if err := h.Check(req.URL.String()); err != nil {
				return fmt.Errorf("its redirect %w", err)
			}
			return nil
		},
	}
	return func(ctx context.Context, r Request) (int, error) {
		req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
		if err != nil {
			return 0, errors.New("the callback is not a URL")
		}
		for name, value := range r.Header {
			req.Header.Set(name, value)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, fmt.Errorf("cannot %s the %s: %w", strings.ToLower(r.Method), noun, outbound.Bare(err))
		}
		defer resp.Body.Close()
		// Reading the body allows reuse of the connection; a longer body closes it.
		_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
		return resp.StatusCode, nil
	}
}

// send sends a request. It waits until fewer than Config.Parallel are under
// way.
func (o *Outbox) send(ctx context.Context, id string, r Request) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case o.sending <- struct{}{}:
	}
	defer func() { <-o.sending }()
	header := map[string]string{"User-Agent": "k8splugin", DeliveryHeader: id}
	maps.Copy(header, r.Header)
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
