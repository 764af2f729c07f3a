package outbound

import (
	"cmp"
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
)

// Plain returns the error of a failed HTTP request with its cause in plain words:
// "10.0.0.1:6443: connection refused". The text contains neither the URL, which may
// have a token or a signature, nor an address of this host. An error that Plain
// does not know keeps its text. The result wraps err.
func Plain(err error) error {
	cause := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		cause = u.Err
	}
	return &plainError{text: cmp.Or(certificateWords(cause), connectionWords(cause), cause.Error()), err: err}
}

// plainError is an error with another text.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.err }

// connectionWords describes an error of a connection; "" if it is none.
func connectionWords(err error) string {
	var (
		dns     *net.DNSError
		number  syscall.Errno
		dialled *net.OpError
		timeout net.Error
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host name " + dns.Name + " does not exist"
	case errors.As(err, &dns):
		return "the host name " + dns.Name + " cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no response in time"
	case errors.As(err, &number):
		text := number.Error()
		if errors.As(err, &dialled) && dialled.Op == "dial" && dialled.Addr != nil {
			return dialled.Addr.String() + ": " + text
		}
		return text
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed before the response was complete"
	}
	return ""
}

// certificateWords describes an error of TLS; "" if it is none.
func certificateWords(err error) string {
	var (
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.As(err, &host):
		return fmt.Sprintf("the server's certificate is not valid for %s", host.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired, or is not yet valid"
	case errors.As(err, &authority):
		return "the server's certificate is signed by an unknown authority"
	case errors.As(err, &verify):
		return "the server's certificate cannot be verified"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "the server does not speak TLS"
	case errors.As(err, &alert):
		return fmt.Sprintf("the server ended the TLS handshake with alert %d", uint8(alert))
	}
	return ""
}
