package shell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

const (
	dialTime      = 10 * time.Second
	handshakeTime = 20 * time.Second
)

// Dial connects to a host and authenticates. It returns the key that the host
// has proved. A host without a pinned key is trusted on first use. Its errors
// are those of site.HostProbe, and nf.Invalid for an unusable credential.
func Dial(ctx context.Context, host nf.SiteHost, m nf.SiteSecrets) (client *ssh.Client, key string, err error) {
	h := handshake{host: host}
	cfg, err := h.config(m.Of(host.Name))
	if err != nil {
		return nil, "", err
	}
	address := net.JoinHostPort(host.Address, strconv.Itoa(host.Port))
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, "", h.unreachable(cmp.Or(outbound.Reason(err), nf.ReasonTCP), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the handshake then fails
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, "", errors.Join(h.unreachable(nf.ReasonTCP, err), conn.Close())
	}
	c, channels, requests, err := ssh.NewClientConn(conn, address, cfg)
	if err != nil {
		_ = conn.Close() // the handshake has failed already
		return nil, "", h.refused(err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, "", errors.Join(h.unreachable(nf.ReasonTCP, err), conn.Close())
	}
	return ssh.NewClient(c, channels, requests), h.key, nil
}

// Probe implements site.HostProbe.
func Probe(ctx context.Context, host nf.SiteHost, m nf.SiteSecrets) (string, error) {
	client, key, err := Dial(ctx, host, m)
	if err != nil {
		return "", err
	}
	_ = client.Close() // only its success matters
	return key, nil
}

var _ site.HostProbe = Probe

// handshake records what is learned of a host while connecting.
type handshake struct {
	host   nf.SiteHost
	key    string // that the host has proved
	other  string // why the key does not match the pinned one
	proved bool
}

func (h *handshake) config(m nf.SiteSecrets) (*ssh.ClientConfig, error) {
	cfg := &ssh.ClientConfig{User: h.host.User, HostKeyCallback: h.prove, Timeout: handshakeTime}
	if h.host.Key != "" {
		pinned, err := parseKey(h.host.Key)
		if err != nil {
			return nil, err
		}
		cfg.HostKeyAlgorithms = algorithms(pinned.Type())
	}
	if len(m.PrivateKey) > 0 {
		raw, err := PrivateKey(m)
		if err != nil {
			return nil, err
		}
		signer, err := ssh.NewSignerFromKey(raw)
		if err != nil {
			return nil, unusable("SSH does not support keys of its type")
		}
		cfg.Auth = append(cfg.Auth, ssh.PublicKeys(signer))
	}
	if len(m.Password) > 0 {
		cfg.Auth = append(cfg.Auth, ssh.Password(string(m.Password)), ssh.KeyboardInteractive(func(_, _ string, questions []string, echos []bool) ([]string, error) {
			answers := make([]string, len(questions))
			for i := range questions {
				if !echos[i] { // an echoed question does not ask for the password
					answers[i] = string(m.Password)
				}
			}
			return answers, nil
		}))
	}
	return cfg, nil
}

// algorithms returns the signature algorithms for a key of the type.
func algorithms(kind string) []string {
	if kind == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{kind}
}

// prove implements ssh.HostKeyCallback. It runs before any credential is sent.
func (h *handshake) prove(_ string, _ net.Addr, key ssh.PublicKey) error {
	h.key = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if h.host.Key != "" {
		pinned, err := parseKey(h.host.Key)
		if err != nil {
			return err
		}
		if !bytes.Equal(pinned.Marshal(), key.Marshal()) {
			h.other = fmt.Sprintf("its host key is %s, but %s is pinned", ssh.FingerprintSHA256(key), ssh.FingerprintSHA256(pinned))
			return errors.New(h.other)
		}
	}
	h.proved = true
	return nil
}

// refused returns the error of a failed handshake.
func (h *handshake) refused(err error) error {
	_, disagreed := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	lost := outbound.Reason(err)
	switch {
	case h.other != "":
		return h.unreachable(nf.ReasonHostKey, errors.New(h.other))
	case disagreed && h.host.Key != "":
		return h.unreachable(nf.ReasonHostKey, fmt.Errorf("it may lack a host key of the pinned type: %w", err))
	case lost == nf.ReasonTimeout:
		return h.unreachable(lost, err)
	case h.proved:
		return h.unreachable(nf.ReasonUnauthorized, fmt.Errorf("it rejects user %s with this credential: %w", h.host.User, err))
	}
	return h.unreachable(nf.ReasonSSH, err)
}

func (h *handshake) unreachable(reason string, err error) error {
	return &nf.Error{Kind: nf.Unreachable, Op: "connect to", Subject: fmt.Sprintf("host %s at %s", h.host.Name, net.JoinHostPort(h.host.Address, strconv.Itoa(h.host.Port))), Reason: reason, Err: err}
}

// PrivateKey returns the private key of a credential. It returns nf.Invalid if
// the key cannot be read.
func PrivateKey(m nf.SiteSecrets) (any, error) {
	var raw any
	var err error
	if len(m.Passphrase) > 0 {
		raw, err = ssh.ParseRawPrivateKeyWithPassphrase(m.PrivateKey, m.Passphrase)
	} else {
		raw, err = ssh.ParseRawPrivateKey(m.PrivateKey)
	}
	if err != nil {
		return nil, unusable(keyFault(m, err))
	}
	if key, ok := raw.(*rsa.PrivateKey); ok && key.N.BitLen() < 2048 {
		return nil, unusable("it is an RSA key with less than 2048 bits")
	}
	return raw, nil
}

// Usable returns nf.Invalid if a credential cannot be used, as far as that can
// be found without connecting.
func Usable(m nf.SiteSecrets) error {
	for host := range m.Hosts {
		own := m.Of(host)
		own.Hosts = nil
		if err := Usable(own); err != nil {
			return fmt.Errorf("cannot use the credential of host %s: %w", host, err)
		}
	}
	if len(m.PrivateKey) == 0 {
		return nil
	}
	_, err := PrivateKey(m)
	return err
}

func unusable(why string) error {
	return nf.E(nf.Invalid, "use", "the credential", nf.Violations{{Field: "credential.private_key", Message: "cannot be read: " + why}})
}

// keyFault returns why the SSH library cannot read a private key.
func keyFault(m nf.SiteSecrets, err error) string {
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		return "it requires a passphrase"
	}
	if errors.Is(err, x509.IncorrectPasswordError) {
		return "the passphrase is wrong"
	}
	if _, err := ssh.ParseRawPrivateKey(m.PrivateKey); err == nil {
		return "it has no passphrase, but one is given"
	}
	return "it is not a private key in PEM or OpenSSH format"
}

// parseKey parses a pinned key.
func parseKey(text string) (ssh.PublicKey, error) {
	kind, encoded, _ := strings.Cut(text, " ")
	blob, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		var key ssh.PublicKey
		if key, err = ssh.ParsePublicKey(blob); err == nil && key.Type() == kind {
			return key, nil
		}
	}
	return nil, nf.E(nf.Invalid, "use", "the host key", nf.Violations{{Field: "host_key", Message: "is not a public key"}})
}
