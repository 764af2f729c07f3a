package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// moody is a server that answers with errors.
type moody struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer

	answer        codes.Code // to every write, and to a read that is not the first of three
	writes, reads atomic.Int32
}

func (m *moody) Txn(context.Context, *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	m.writes.Add(1)
	return nil, status.Error(m.answer, "who knows")
}

func (m *moody) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if m.reads.Add(1)%3 != 1 {
		return nil, status.Error(m.answer, "not now")
	}
	return &etcdserverpb.RangeResponse{}, nil
}

func (*moody) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{}, nil
}

// TestWriteIsSentOnce lets a server, or a proxy before it, abandon a write: it
// may have been applied. A read is tried again.
func TestWriteIsSentOnce(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled} {
		t.Run(code.String(), func(t *testing.T) {
			m := &moody{answer: code}
			server := grpc.NewServer()
			etcdserverpb.RegisterKVServer(server, m)
			etcdserverpb.RegisterMaintenanceServer(server, m)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error)
			go func() { served <- server.Serve(l) }()
			t.Cleanup(func() {
				server.Stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			})

			s := open(t, Config{Endpoints: []string{"http://" + l.Addr().String()}})
			_, err = s.Put(t.Context(), "key", nil, 7)
			if nf.KindOf(err) != nf.Unreachable {
				t.Errorf("the error is %v (%s), want unreachable", err, nf.KindOf(err))
			}
			if err := s.Delete(t.Context(), "key", 7); nf.KindOf(err) != nf.Unreachable {
				t.Errorf("the error is %v (%s), want unreachable", err, nf.KindOf(err))
			}
			if n := m.writes.Load(); n != 2 {
				t.Errorf("two writes were sent %d times", n)
			}
			if _, err := s.Get(t.Context(), "key"); nf.KindOf(err) != nf.NotFound || m.reads.Load() != 4 {
				t.Errorf("a read that is tried again, %d times in all, has the error %v", m.reads.Load(), err)
			}
		})
	}
}

// TestOpenSaysWhy wants more than that the time was up.
func TestOpenSaysWhy(t *testing.T) {
	nobody := freePort(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Open(ctx, Config{Endpoints: []string{nobody.String()}})
	if nf.KindOf(err) != nf.Unreachable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v (%s), want unreachable", err, nf.KindOf(err))
	}
	for _, want := range []string{nobody.Host, syscall.ECONNREFUSED.Error()} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	serverCert, serverKey := ours.issue(t, "server")
	cert, key := ours.issue(t, "client")
	otherCert, otherKey := theirs.issue(t, "stranger")
	endpoints := startAlone(t, func(c *embed.Config) {
		c.ListenClientUrls[0].Scheme = "https"
		c.ClientTLSInfo = transport.TLSInfo{CertFile: serverCert, KeyFile: serverKey, TrustedCAFile: ours.file, ClientCertAuth: true}
	})
	host := strings.TrimPrefix(endpoints[0], "https://")
	cases := map[string]struct {
		reason  string
		options string
		kind    nf.Kind // of the error; Internal when there is none
	}{
		"Right":       {"both know each other", "?ca=" + ours.file + "&cert=" + cert + "&key=" + key, nf.Internal},
		"Anonymous":   {"the server wants a certificate", "?ca=" + ours.file, nf.Unreachable},
		"Stranger":    {"the server does not know his authority", "?ca=" + ours.file + "&cert=" + otherCert + "&key=" + otherKey, nf.Unreachable},
		"WrongServer": {"the server's authority is not ours", "?ca=" + theirs.file + "&cert=" + cert + "&key=" + key, nf.Unreachable},
		"Unknown":     {"nor is it the system's", "?tls=true", nf.Unreachable},
		"Open":        {"the server speaks TLS only", "", nf.Unreachable},
		"NoFile":      {"a file is missing", "?ca=/nonexistent", nf.Invalid},
		"NoKey":       {"a key is no certificate", "?cert=" + key + "&key=" + key, nf.Invalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of them wait
			config, err := ParseLocation(host + c.options)
			if err != nil {
				t.Fatal(err)
			}
			if c.kind == nf.Internal {
				if _, err := open(t, config).Put(t.Context(), "key", nil, store.Any); err != nil {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := Open(ctx, config); nf.KindOf(err) != c.kind {
				t.Errorf("%s: the error is %v (%s), want one of kind %s", c.reason, err, nf.KindOf(err), c.kind)
			}
		})
	}
}

func TestUser(t *testing.T) {
	endpoints := startAlone(t, func(c *embed.Config) { c.BcryptCost = 4 }) // the least
	admin, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }() // nothing is lost with it
	ctx, all := t.Context(), "\x00"
	steps := []func() error{
		func() error { _, err := admin.UserAdd(ctx, "root", "toor"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.RoleAdd(ctx, "keeper"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(ctx, "keeper", all, all, clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.UserAdd(ctx, "k8splugin", "hunter2"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "k8splugin", "keeper"); return err },
		func() error { _, err := admin.UserAdd(ctx, "nobody", "hunter2"); return err },
		func() error { _, err := admin.AuthEnable(ctx); return err },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	host := strings.TrimPrefix(endpoints[0], "http://")
	cases := map[string]struct {
		reason string
		user   string
		reach  bool
	}{
		"Right":   {"he may read and write", "k8splugin:hunter2@", true},
		"Wrong":   {"that is not his password", "k8splugin:hunter3@", false},
		"Nobody":  {"he may nothing", "nobody:hunter2@", false},
		"Unnamed": {"the cluster wants to know", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config, err := ParseLocation(c.user + host)
			if err != nil {
				t.Fatal(err)
			}
			if c.reach {
				s := open(t, config)
				if _, err := s.Put(t.Context(), "key", nil, store.Any); err != nil {
					t.Errorf("%s: %v", c.reason, err)
				}
				if err := s.Healthy(t.Context()); err != nil {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			_, err = Open(t.Context(), config)
			if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != "forbidden" {
				t.Errorf("%s: the error is %v (%s, %q), want unreachable because it is forbidden", c.reason, err, nf.KindOf(err), nf.ReasonOf(err))
			}
			if err != nil && strings.Contains(err.Error(), "hunter") {
				t.Errorf("%s: the error shows the password: %v", c.reason, err)
			}
		})
	}
}

// TestUserWaits uses a server that does not answer requests for a token.
func TestUserWaits(t *testing.T) {
	nobody := freePort(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := Open(ctx, Config{Endpoints: []string{nobody.String()}, User: "user", Password: nf.Secret("hunter2")})
	if nf.KindOf(err) != nf.Unreachable || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v (%s), want unreachable and no password", err, nf.KindOf(err))
	}
}

// startAlone starts a server that takes its requests from a port, and returns
// its URL.
func startAlone(t *testing.T, edit func(*embed.Config)) []string {
	t.Helper()
	c := serverConfig(Config{Dir: t.TempDir()}, zap.NewNop())
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	edit(c)
	c.AdvertiseClientUrls = c.ListenClientUrls
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return []string{c.ListenClientUrls[0].Scheme + "://" + e.Clients[0].Addr().String()}
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	der, a.key = a.sign(t, a.cert)
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	der, key := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	certFile, keyFile = filepath.Join(t.TempDir(), name+".pem"), filepath.Join(t.TempDir(), name+".key")
	writePEM(t, certFile, "CERTIFICATE", der)
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, keyFile, "EC PRIVATE KEY", secret)
	return certFile, keyFile
}

// sign makes a key and certifies it: by the authority's own key, which is the
// same one for the authority itself.
func (a *authority) sign(t *testing.T, cert *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	if der, err = x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, by); err != nil {
		t.Fatal(err)
	}
	return der, key
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
