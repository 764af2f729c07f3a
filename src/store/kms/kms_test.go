package kms_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"k8s.io/kms/pkg/service"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/kms"
	"github.com/multicloud-k8s/k8splugin/src/store/kms"
	"github.com/multicloud-k8s/k8splugin/src/store/kms/kmstest"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dek is a data key. No error contains it.
const dek = "0123456789abcdef0123456789ABCDEF"

func client(t *testing.T, endpoint string) *kms.Client {
	t.Helper()
	c, err := kms.New(kms.Config{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		endpoint string
		valid    bool
	}{
		"Path":     {"the path of a socket", "unix:///run/kms/socket", true},
		"Abstract": {"a socket without a file", "unix:///@kms", true},
		"Host":     {"one slash is missing, and run would be a host", "unix://run/kms/socket", false},
		"Relative": {"the folder of the process is not known to the operator", "unix:socket", false},
		"Bare":     {"a path is not an endpoint", "/run/kms/socket", false},
		"TCP":      {"KMS v2 has no authentication for a network", "tcp://127.0.0.1:1", false},
		"Root":     {"a folder is not a socket", "unix:///", false},
		"Query":    {"there are no options", "unix:///run/kms?a=b", false},
		"Empty":    {"nothing", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := kms.New(kms.Config{Endpoint: tc.endpoint}); (err == nil) != tc.valid {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	s := kmstest.Start(t)
	c := client(t, s.Endpoint)
	wrapped, err := c.Wrap(t.Context(), []byte(dek))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(wrapped.Ciphertext, []byte(dek)) || len(wrapped.Annotations) != 1 {
		t.Errorf("wrapped: %+v", wrapped)
	}
	first, err := c.KeyID(t.Context())
	if err != nil || first != wrapped.KeyID {
		t.Errorf("the present key is %q, %v, and the data key has %q", first, err, wrapped.KeyID)
	}
	second := s.Plugin.Rotate()
	if got, err := c.Unwrap(t.Context(), wrapped); err != nil || string(got) != dek {
		t.Errorf("after a rotation, the former key does not decrypt: %v", err)
	}
	if got, err := c.KeyID(t.Context()); err != nil || got != second {
		t.Errorf("the present key is %q, %v, want %q", got, err, second)
	}
	s.Plugin.Lose()
	_, err = c.Unwrap(t.Context(), wrapped)
	if nf.KindOf(err) != nf.Failed || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
		t.Errorf("the error does not name both keys: %v", err)
	}
	for _, e := range s.Plugin.Journal() {
		if e.Method == "Encrypt" && e.Size != len(dek) {
			t.Errorf("%d bytes were sent, want the data key alone", e.Size)
		}
	}
}

// TestFaults has a service misbehave in each way.
func TestFaults(t *testing.T) {
	t.Parallel()
	state := func(edit func(*service.StatusResponse)) simulator.Fault {
		return simulator.Fault{Method: "Status", Status: edit}
	}
	sealed := func(edit func(*service.EncryptResponse)) simulator.Fault {
		return simulator.Fault{Method: "Encrypt", Encrypt: edit}
	}
	long := strings.Repeat("x", 1025)
	cases := map[string]struct {
		reason string
		fault  simulator.Fault
		kind   nf.Kind
		says   string
	}{
		"Unhealthy":   {"the service says what it lacks", state(func(r *service.StatusResponse) { r.Healthz = "the HSM is locked" }), nf.Unreachable, "not healthy: \"the HSM is locked\""},
		"Talkative":   {"an error has one line", state(func(r *service.StatusResponse) { r.Healthz = "a\nb" + strings.Repeat("c", 20_000) }), nf.Unreachable, `a\nb`},
		"Version":     {"a plugin for an earlier interface", state(func(r *service.StatusResponse) { r.Version = "v1beta1" }), nf.Failed, "version v2 is required"},
		"NoKey":       {"a status names the key", state(func(r *service.StatusResponse) { r.KeyID = "" }), nf.Failed, "1 to 1024 bytes"},
		"LongKey":     {"its id has a limit", state(func(r *service.StatusResponse) { r.KeyID = long }), nf.Failed, "1 to 1024 bytes"},
		"Unavailable": {"the service is restarting", simulator.Fault{Method: "Encrypt", Code: codes.Unavailable}, nf.Unreachable, "Unavailable"},
		"Denied":      {"the service has no permission", simulator.Fault{Method: "Encrypt", Code: codes.PermissionDenied}, nf.Failed, "PermissionDenied"},
		"Empty":       {"a data key must not be lost", sealed(func(r *service.EncryptResponse) { r.Ciphertext = nil }), nf.Failed, "ciphertext"},
		"Long":        {"a ciphertext has a limit", sealed(func(r *service.EncryptResponse) { r.Ciphertext = []byte(long) }), nf.Failed, "has 1025"},
		"Anonymous":   {"a ciphertext has a key", sealed(func(r *service.EncryptResponse) { r.KeyID = "" }), nf.Failed, "id of the key"},
		"Name":        {"annotations have names of domains", sealed(func(r *service.EncryptResponse) { r.Annotations["short"] = nil }), nf.Failed, `"short"`},
		"Annotations": {"annotations have a limit", sealed(func(r *service.EncryptResponse) { r.Annotations["a.example"] = make([]byte, 32<<10) }), nf.Failed, "at most 32768 bytes"},
		"Oversized":   {"no more is read", sealed(func(r *service.EncryptResponse) { r.Ciphertext = make([]byte, 1<<20) }), nf.Failed, "larger than max"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kmstest.Start(t)
			s.Plugin.Fail(tc.fault, 0)
			_, err := client(t, s.Endpoint).Wrap(t.Context(), []byte(dek))
			if err == nil || nf.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says) || (nf.ReasonOf(err) == nf.ReasonKMS) != (tc.kind == nf.Unreachable) {
				t.Errorf("%s: %v (%s, reason %q), want kind %s and %q", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err), tc.kind, tc.says)
			}
			if err != nil && (len(err.Error()) > 1000 || strings.Contains(err.Error(), dek) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: the error is not fit for a log: %.2000q", tc.reason, err.Error())
			}
		})
	}
}

// TestUnwrapRefuses does not send what no service of KMS v2 has returned.
func TestUnwrapRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		wrapped seal.WrappedKey
	}{
		"Empty":       {"nothing", seal.WrappedKey{}},
		"Long":        {"a ciphertext has a limit", seal.WrappedKey{KeyID: "a", Ciphertext: make([]byte, 1025)}},
		"Annotations": {"annotations have a limit", seal.WrappedKey{KeyID: "a", Ciphertext: []byte("a"), Annotations: map[string][]byte{"a.example": make([]byte, 40_000)}}},
	}
	s := kmstest.Start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := client(t, s.Endpoint).Unwrap(t.Context(), tc.wrapped)
			if nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: %v (%s)", tc.reason, err, nf.KindOf(err))
			}
		})
	}
	if got := s.Plugin.Journal(); len(got) != 0 {
		t.Errorf("the service got %v", got)
	}
}

// TestNoResponse has services that are down, hang, or do not speak gRPC.
func TestNoResponse(t *testing.T) {
	t.Parallel()
	down := kmstest.Start(t)
	down.Stop()
	hanging := kmstest.Start(t)
	hanging.Plugin.Fail(simulator.Fault{Method: "Encrypt", Hang: true}, -1)
	silent := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", silent) // it accepts nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	cases := map[string]struct {
		reason   string
		endpoint string
	}{
		"Down":    {"nothing listens on the socket", down.Endpoint},
		"Missing": {"there is no socket", "unix:///nowhere/kms/socket"},
		"Hanging": {"a request does not end", hanging.Endpoint},
		"Silent":  {"a connection is not accepted", "unix://" + silent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := kms.New(kms.Config{Endpoint: tc.endpoint, Timeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Wrap(t.Context(), []byte(dek))
			if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != nf.ReasonKMS {
				t.Errorf("%s: %v (%s, reason %q)", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := c.Wrap(ctx, []byte(dek)); nf.KindOf(err) == nf.Unreachable || err == nil {
				t.Errorf("%s, but the caller left: %v", tc.reason, err)
			}
		})
	}
}
