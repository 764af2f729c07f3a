package ansible

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/crypto/ssh/agent"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site/shell"
)

// keyring is an SSH agent with a site's only key. The key is in no file and in
// no other process.
type keyring struct {
	path     string
	listener net.Listener
	keys     agent.Agent

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

// newAgent starts an agent. It returns nil for a site without a key.
func newAgent(path string, m nf.SiteSecrets) (*keyring, error) {
	if len(m.PrivateKey) == 0 {
		return nil, nil
	}
	raw, err := shell.PrivateKey(m)
	if err != nil {
		return nil, err
	}
	k := &keyring{path: path, keys: agent.NewKeyring(), conns: map[net.Conn]bool{}}
	if err := k.keys.Add(agent.AddedKey{PrivateKey: raw}); err != nil {
		return nil, fmt.Errorf("cannot use the private key: %w", err)
	}
	if k.listener, err = net.Listen("unix", path); err != nil {
		return nil, fmt.Errorf("cannot add the private key to the SSH agent: %w", err)
	}
	k.done.Go(k.serve)
	return k, nil
}

func (k *keyring) serve() {
	for {
		conn, err := k.listener.Accept()
		if err != nil {
			return
		}
		k.mu.Lock()
		k.conns[conn] = true
		k.mu.Unlock()
		k.done.Go(func() {
			_ = agent.ServeAgent(readOnly{k.keys}, conn) // it ends with the connection
			_ = conn.Close()                             // it may be closed already
			k.mu.Lock()
			delete(k.conns, conn)
			k.mu.Unlock()
		})
	}
}

// close stops the agent and closes its connections.
func (k *keyring) close() {
	if k == nil {
		return
	}
	_ = k.listener.Close() // no new connections from here on
	k.mu.Lock()
	for conn := range k.conns {
		_ = conn.Close() // it may be closed already
	}
	k.mu.Unlock()
	k.done.Wait()
}

// readOnly is an agent that signs and cannot be changed.
type readOnly struct{ agent.Agent }

var errReadOnly = errors.New("this SSH agent is read-only")

func (readOnly) Add(agent.AddedKey) error { return errReadOnly }
func (readOnly) RemoveAll() error         { return errReadOnly }
func (readOnly) Lock([]byte) error        { return errReadOnly }
func (readOnly) Unlock([]byte) error      { return errReadOnly }
