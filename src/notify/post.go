package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	postTime  = 10 * time.Second // for one post, with its redirects and the answer
	dialTime  = 5 * time.Second
	maxAnswer = 4 << 10 // bytes of an answer that are read; nobody looks at them
	maxHops   = 3       // redirects that one post follows
)

// The headers of a letter, beside the usual ones.
const (
	// LetterHeader bears the letter's id: one that comes twice is the same.
	LetterHeader = "X-K8splugin-Letter"
	// TimestampHeader bears when a signed letter was posted, in Unix seconds.
	TimestampHeader = "X-K8splugin-Timestamp"
	// SignatureHeader bears "sha256=" and, in hexadecimal digits, the HMAC-SHA256
	// under the subscription's secret of the timestamp, a dot, and the body.
	SignatureHeader = "X-K8splugin-Signature"
)

// courier posts over HTTP.
type courier struct{ client *http.Client }

var _ Poster = courier{}

// NewPoster returns a poster that calls only where the hosts allow. It uses no
// proxy: that would call in its stead. It follows redirects that keep the method,
// to where the hosts allow. An answer must come within 10 seconds.
func NewPoster(h outbound.Hosts) Poster {
	return courier{&http.Client{
		Timeout: postTime,
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
			if req.Method != http.MethodPost {
				return http.ErrUseLastResponse // a GET tells nobody anything
			}
			if len(via) > maxHops {
				return fmt.Errorf("it redirects more than %d times", maxHops)
			}
			if err := h.Check(req.URL.String()); err != nil {
				return fmt.Errorf("its redirect %w", err)
			}
			return nil
		},
	}}
}

// Post implements Poster.
func (c courier) Post(ctx context.Context, callback string, header map[string]string, body []byte) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, callback, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the callback is not a URL")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("cannot post the letter: %w", outbound.Bare(err))
	}
	defer resp.Body.Close()
	// What is read lets the connection be used again; what is not, closes it.
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	return resp.StatusCode, nil
}

// envelope is ONAP's notification.
type envelope struct {
	Instance     string          `json:"instance-id"`
	Subscription string          `json:"subscription-name"`
	Metadata     json.RawMessage `json:"metadata"`
	Changes      json.RawMessage `json:"resource-changes"`
}

// seal returns a letter as it is posted.
func seal(s Subscription, l Letter, now time.Time) (map[string]string, []byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(envelope{s.Instance, s.Name, s.Metadata, l.Changes}); err != nil {
		return nil, nil, fmt.Errorf("cannot write the letter down: %w", err)
	}
	header := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "k8splugin", LetterHeader: l.ID,
	}
	if len(s.Secret) > 0 {
		stamp := strconv.FormatInt(now.Unix(), 10)
		header[TimestampHeader] = stamp
		header[SignatureHeader] = Sign(s.Secret, stamp, body.Bytes())
	}
	return header, body.Bytes(), nil
}

// Sign returns the value of SignatureHeader.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(append([]byte(timestamp), '.')) // never fails
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
