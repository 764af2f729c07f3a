package istio_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/test/bufconn"

	"github.com/multicloud-k8s/k8splugin/src/istio"
	"github.com/multicloud-k8s/k8splugin/src/simulator/istiod"
)

// mesh is a simulated istiod, with the files that Kubernetes gives a pod. It
// serves on connections in memory, so that a synctest bubble waits for it.
type mesh struct {
	*testing.T

	istiod *istiod.Simulator
	dir    string
	log    *buffer
	net    *bufconn.Listener

	mu       sync.Mutex
	accounts map[string]string // namespace:name by live token
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

const token = "eyJ.service-account.token"

func newMesh(t *testing.T, cfg istiod.Config) *mesh {
	t.Helper()
	m := &mesh{T: t, dir: t.TempDir(), log: &buffer{}, net: bufconn.Listen(1 << 20), accounts: map[string]string{token: "onap:k8splugin"}}
	cfg.Review = func(_ context.Context, token string, audiences []string) (istiod.Review, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		account, live := m.accounts[token]
		return istiod.Review{Authenticated: live, User: "system:serviceaccount:" + account, Audiences: audiences}, nil
	}
	var err error
	if m.istiod, err = istiod.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func(s *istiod.Simulator, l net.Listener) { served <- s.Serve(ctx, l) }(m.istiod, m.net)
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if text := m.log.String(); strings.Contains(text, "eyJ") || strings.Contains(text, "PRIVATE") {
			t.Errorf("a secret is in the log:\n%s", text)
		}
	})
	m.write("token", token+"\n")
	m.write("root", m.istiod.Roots())
	return m
}

func (m *mesh) write(name, content string) {
	m.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(content), 0o600); err != nil {
		m.Fatal(err)
	}
}

// accept makes a token that of a service account, and of no other.
func (m *mesh) accept(token, account string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accounts = map[string]string{token: account}
}

// onap allows the peers of one namespace.
const onap = "spiffe://cluster.local/ns/onap/"

// identity returns an identity without a certificate that allows peers.
func (m *mesh) identity(peers ...string) *istio.Identity {
	m.Helper()
	i, err := istio.New(istio.Config{
		Address: istiod.Host + ":15012", TokenFile: filepath.Join(m.dir, "token"), RootFile: filepath.Join(m.dir, "root"), Cluster: "c1",
		Peers: peers, Logger: slog.New(slog.NewTextHandler(m.log, nil)),
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return m.net.DialContext(ctx) },
	})
	if err != nil {
		m.Fatal(err)
	}
	return i
}

// run runs an identity until the function ends that it returns, and waits in a
// bubble until it has done what it can at once.
func (m *mesh) run(i *istio.Identity) (stop func()) {
	ctx, cancel := context.WithCancel(m.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			m.Error(err)
		}
	}
}
