package sitetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Password is the password of User.
const Password = "the right password"

// User is the only user that the host accepts.
const User = "operator"

// Host is a running server.
type Host struct {
	Home string // the user's folder; programs in bin, below it, precede those of this machine

	listener net.Listener
	config   *ssh.ServerConfig
	key      ssh.Signer
	secrets  nf.SiteSecrets

	mu       sync.Mutex
	attempts int
	conns    map[net.Conn]bool
	groups   map[int]bool // processes that were started
	closed   bool         // what is added from now on ends at once
	done     sync.WaitGroup
}

// New starts a host that stops with the test.
func New(t testing.TB) *Host {
	t.Helper()
	h := &Host{Home: t.TempDir(), key: signer(t, newKey(t)), conns: map[net.Conn]bool{}, groups: map[int]bool{}}
	client := newKey(t)
	block, err := ssh.MarshalPrivateKey(client, "")
	if err != nil {
		t.Fatal(err)
	}
	h.secrets = nf.SiteSecrets{PrivateKey: pem.EncodeToMemory(block)}
	allowed := signer(t, client).PublicKey().Marshal()
	h.config = &ssh.ServerConfig{
		PasswordCallback: func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			return h.judge(c.User() == User && string(password) == Password)
		},
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return h.judge(c.User() == User && string(key.Marshal()) == string(allowed))
		},
	}
	h.config.AddHostKey(h.key)
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	h.done.Go(h.serve)
	t.Cleanup(h.Close)
	return h
}

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signer(t testing.TB, key any) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (h *Host) judge(ok bool) (*ssh.Permissions, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts++
	if !ok {
		return nil, errors.New("no")
	}
	return nil, nil
}

// Attempts returns how many credentials were offered.
func (h *Host) Attempts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.attempts
}

// Site returns the host as a host of a site, with its key pinned.
func (h *Host) Site() nf.SiteHost {
	host, port, _ := net.SplitHostPort(h.listener.Addr().String())
	number, _ := strconv.Atoi(port)
	return nf.SiteHost{
		Name: "n1", Address: host, Port: number, User: User, Role: nf.ControlPlane, State: nf.HostJoining, Key: h.Key(),
	}
}

// Key returns the host's public key.
func (h *Host) Key() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(h.key.PublicKey())))
}

// Secrets returns a credential with the private key that the host accepts.
func (h *Host) Secrets() nf.SiteSecrets { return h.secrets }

// Cut closes every connection.
func (h *Host) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		_ = c.Close() // it may be closed already
	}
}

// Close stops the server and the processes that it has started. Cut leaves them
// running, as does the end of a connection with any server.
func (h *Host) Close() {
	_ = h.listener.Close() // it may be closed already
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Cut()
	h.mu.Lock()
	for group := range h.groups {
		_ = syscall.Kill(-group, syscall.SIGKILL) // it may have ended
	}
	h.mu.Unlock()
	h.done.Wait()
}

func (h *Host) serve() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.conns[conn] = true
		if h.closed {
			_ = conn.Close()
		}
		h.mu.Unlock()
		h.done.Go(func() { h.connection(conn) })
	}
}

func (h *Host) connection(conn net.Conn) {
	defer func() { _ = conn.Close() }() // it may be closed already
	_, channels, requests, err := ssh.NewServerConn(conn, h.config)
	if err != nil {
		return
	}
	var sessions sync.WaitGroup
	defer sessions.Wait()
	sessions.Go(func() { ssh.DiscardRequests(requests) })
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, "there are sessions only")
			continue
		}
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		sessions.Go(func() { h.session(channel, requests) })
	}
}

func (h *Host) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }() // it may be closed already
	for r := range requests {
		var command struct{ Text string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &command) != nil {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		status := struct{ Code uint32 }{uint32(h.execute(command.Text, channel))}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}

// execute runs a command as sshd does: by the user's shell, in a separate
// session.
func (h *Host) execute(text string, channel ssh.Channel) int {
	cmd := exec.Command("/bin/sh", "-c", text)
	cmd.Dir = h.Home
	cmd.Env = []string{"HOME=" + h.Home, "PATH=" + h.Home + "/bin:/usr/local/bin:/usr/bin:/bin"}
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 255
	}
	if err := cmd.Start(); err != nil {
		return 127
	}
	h.mu.Lock()
	h.groups[cmd.Process.Pid] = true
	if h.closed {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	}
	h.mu.Unlock()
	h.done.Go(func() {
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	})
	err = cmd.Wait()
	h.mu.Lock()
	delete(h.groups, cmd.Process.Pid)
	h.mu.Unlock()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() >= 0 {
			return e.ExitCode()
		}
		return 255
	}
	return 0
}
