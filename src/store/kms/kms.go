// Package kms encrypts data keys with a key management service, over the interface
// that Kubernetes has for plugins of such services: KMS v2, gRPC over a UNIX
// socket. So every plugin for Kubernetes can be used.
//
// Guarantees: before each request, the service must report that it serves KMS v2
// and is healthy. A response is used only if it is within the limits of KMS v2.
// Each call has a timeout, and no error contains a data key.
//
// The package encrypts nothing but data keys, and reads no file: package seal does.
// It keeps no connection, and repeats no request. It does not speak KMS v1. It does
// not authenticate the service: the permissions of the socket's folder do.
package kms

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation"
	api "k8s.io/kms/apis/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

const (
	defaultTimeout = 10 * time.Second

	// The limits of KMS v2.
	maxKeyID       = 1 << 10
	maxCiphertext  = 1 << 10
	maxAnnotations = 32 << 10

	maxResponse = 64 << 10 // above all limits together
	maxMessage  = 300      // characters of a service's message in an error
)

// Config describes a service.
type Config struct {
	Endpoint string        // unix:///path/of/the/socket; unix:///@name is an abstract socket
	Timeout  time.Duration // of a call, with the request for the status; 10 s by default
}

// Client uses one service. It is safe for concurrent use.
type Client struct {
	socket  string
	timeout time.Duration
}

var _ seal.KeyService = (*Client)(nil)

// New returns a client. It does not connect.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Scheme != "unix" || u.Host != "" || len(u.Path) < 2 || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("must be unix:// and the absolute path of a socket, such as unix:///run/kms/socket, got %q", cfg.Endpoint)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	socket := u.Path
	if strings.HasPrefix(socket, "/@") {
		socket = socket[1:]
	}
	return &Client{socket: socket, timeout: cfg.Timeout}, nil
}

// KeyID returns the id of the key that the service encrypts with. Its errors are
// those of Wrap.
func (c *Client) KeyID(ctx context.Context) (string, error) {
	id := ""
	err := c.call(ctx, func(_ context.Context, _ api.KeyManagementServiceClient, keyID string) error {
		id = keyID
		return nil
	})
	return id, err
}

// Wrap implements seal.KeyService. It returns nf.Failed if the service rejects the
// request, or its response is not of KMS v2.
func (c *Client) Wrap(ctx context.Context, dek []byte) (wrapped seal.WrappedKey, err error) {
	err = c.call(ctx, func(ctx context.Context, service api.KeyManagementServiceClient, _ string) error {
		r, err := service.Encrypt(ctx, &api.EncryptRequest{Plaintext: dek, Uid: uid()})
		if err != nil {
			return c.failed(ctx, err)
		}
		wrapped = seal.WrappedKey{KeyID: r.GetKeyId(), Ciphertext: r.GetCiphertext(), Annotations: r.GetAnnotations()}
		if err := check(wrapped); err != nil {
			return c.rejected(fmt.Errorf("its response is not of KMS v2: %w", err))
		}
		return nil
	})
	return wrapped, err
}

// Unwrap implements seal.KeyService. It returns nf.Invalid for a data key that KMS v2
// does not allow, and nf.Failed if the service rejects it.
func (c *Client) Unwrap(ctx context.Context, wrapped seal.WrappedKey) (dek []byte, err error) {
	if err := check(wrapped); err != nil {
		return nil, nf.E(nf.Invalid, "decrypt", "a data key", err)
	}
	err = c.call(ctx, func(ctx context.Context, service api.KeyManagementServiceClient, current string) error {
		r, err := service.Decrypt(ctx, &api.DecryptRequest{
			Ciphertext: wrapped.Ciphertext, Uid: uid(), KeyId: wrapped.KeyID, Annotations: wrapped.Annotations,
		})
		if err != nil {
			return fmt.Errorf("key %.*q encrypted its data key, and the present key of the service is %.*q: %w", maxMessage, wrapped.KeyID, maxMessage, current, c.failed(ctx, err))
		}
		dek = r.GetPlaintext()
		return nil
	})
	return dek, err
}

// call runs a request on a connection of its own, after a check of the service's
// status. The request gets the id of the service's present key.
func (c *Client) call(ctx context.Context, do func(ctx context.Context, service api.KeyManagementServiceClient, keyID string) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///kms",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a UNIX socket
		grpc.WithAuthority("localhost"), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(),
		grpc.WithMaxHeaderListSize(maxResponse), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", c.socket)
		}))
	if err != nil {
		return fmt.Errorf("cannot use the key management service: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing is sent any more
	service := api.NewKeyManagementServiceClient(conn)
	r, err := service.Status(ctx, &api.StatusRequest{})
	if err != nil {
		return c.failed(ctx, err)
	}
	if v := r.GetVersion(); v != "v2" && v != "v2beta1" {
		return c.rejected(fmt.Errorf("it serves version %.20q of the interface; version v2 is required", v))
	}
	if r.GetHealthz() != "ok" {
		return c.unreachable(fmt.Errorf("it is not healthy: %.*q", maxMessage, r.GetHealthz()))
	}
	if err := checkKeyID(r.GetKeyId()); err != nil {
		return c.rejected(fmt.Errorf("its status is not of KMS v2: %w", err))
	}
	return do(ctx, service, r.GetKeyId())
}

// failed returns the error of a call. Plugins use codes as they like; these two mean
// that there was no response.
func (c *Client) failed(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("cannot use the key management service: %w", ctx.Err())
	}
	s := status.Convert(err)
	cause := fmt.Errorf("%s: %.*q", s.Code(), maxMessage, s.Message())
	if s.Code() == codes.Unavailable || s.Code() == codes.DeadlineExceeded {
		return c.unreachable(cause)
	}
	return c.rejected(cause)
}

func (c *Client) unreachable(cause error) error {
	return &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: c.String(), Reason: nf.ReasonKMS, Err: cause}
}

func (c *Client) rejected(cause error) error { return nf.E(nf.Failed, "use", c.String(), cause) }

// String names the service in errors.
func (c *Client) String() string { return fmt.Sprintf("the key management service at %q", c.socket) }

// check returns an error if a data key exceeds a limit of KMS v2.
func check(w seal.WrappedKey) error {
	if err := checkKeyID(w.KeyID); err != nil {
		return err
	}
	if n := len(w.Ciphertext); n == 0 || n > maxCiphertext {
		return fmt.Errorf("the ciphertext must have 1 to %d bytes, and has %d", maxCiphertext, n)
	}
	size := 0
	for key, value := range w.Annotations {
		if len(validation.IsFullyQualifiedDomainName(nil, key)) > 0 {
			return fmt.Errorf("the name %.*q of an annotation is not a fully qualified domain name", maxMessage, key)
		}
		size += len(key) + len(value)
	}
	if size > maxAnnotations {
		return fmt.Errorf("the annotations must have at most %d bytes, and have %d", maxAnnotations, size)
	}
	return nil
}

func checkKeyID(id string) error {
	if len(id) == 0 || len(id) > maxKeyID {
		return fmt.Errorf("the id of the key must have 1 to %d bytes, and has %d", maxKeyID, len(id))
	}
	return nil
}

// uid returns a new id of a request, for the log of the service.
func uid() string { return rand.Text() }
