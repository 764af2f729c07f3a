package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
)

// Reason narrows why a call had no answer, as errors of kind nf.Unreachable do:
// "dns", "tls", "timeout" or "tcp"; empty when it was none of these.
func Reason(err error) string {
	var (
		dns       *net.DNSError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		timeout   net.Error
		dialled   *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &authority):
		return "tls"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &dialled):
		return "tcp"
	}
	return ""
}

// Bare is an error of a request without the URL that it happened with, which may
// bear a token or a signature.
func Bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
