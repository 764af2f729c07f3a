package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Reason classifies a connection error by the reasons of nf.Unreachable: "dns",
// "tls", "timeout" or "tcp". It returns "" for any other error.
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
		return nf.ReasonDNS
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &authority):
		return nf.ReasonTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return nf.ReasonTimeout
	case errors.As(err, &dialled):
		return nf.ReasonTCP
	}
	return ""
}
