package outbound_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

func TestPlain(t *testing.T) {
	server := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443}
	here := &net.TCPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 50000}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: server, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Refused":      {"the server's address and the system's words", refused, "10.0.0.1:6443: connection refused"},
		"In a URL":     {"a URL may have a token", &url.Error{Op: "Get", URL: "https://10.0.0.1/?token=x", Err: refused}, "10.0.0.1:6443: connection refused"},
		"Reset":        {"this host's address stays out", &net.OpError{Op: "read", Net: "tcp", Source: here, Addr: server, Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "connection reset by peer"},
		"Unknown host": {"a name that does not exist", &net.OpError{Op: "dial", Err: &net.DNSError{Name: "edge.example", IsNotFound: true}}, "the host name edge.example does not exist"},
		"DNS away":     {"a name server that does not respond", &net.DNSError{Name: "edge.example", IsTimeout: true}, "the host name edge.example cannot be resolved"},
		"Late":         {"a context's end", fmt.Errorf("wrapped: %w", context.DeadlineExceeded), "no response in time"},
		"Late socket":  {"a socket's end", os.ErrDeadlineExceeded, "no response in time"},
		"Cut":          {"in the middle of a response", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), "the connection was closed before the response was complete"},
		"Authority":    {"a CA that is not trusted", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "the server's certificate is signed by an unknown authority"},
		"Other host":   {"a certificate of another server", x509.HostnameError{Host: "edge.example", Certificate: &x509.Certificate{}}, "the server's certificate is not valid for edge.example"},
		"Expired":      {"a certificate out of date", x509.CertificateInvalidError{Reason: x509.Expired}, "the server's certificate has expired, or is not yet valid"},
		"Other fault":  {"of a certificate", &tls.CertificateVerificationError{Err: errors.New("x")}, "the server's certificate cannot be verified"},
		"Plain HTTP":   {"http at an https address", http.ErrSchemeMismatch, "the server does not speak TLS"},
		"Alert":        {"the server rejects the client's certificate", tls.AlertError(42), "the server ended the TLS handshake with alert 42"},
		"Not known":    {"an error of ours keeps its words", errors.New("the address is not allowed"), "the address is not allowed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := outbound.Plain(tc.err); got.Error() != tc.want || !errors.Is(got, tc.err) {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
