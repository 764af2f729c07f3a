// Package kms simulates a plugin of Kubernetes' interface to key management
// services, KMS v2, for tests. A Simulator has keys for AES-256-GCM in memory, and
// serves them over gRPC on a UNIX socket, with the library that plugins use.
//
// It rejects what a strict plugin rejects: a request without an id or with the id
// of an earlier one, a plaintext or a ciphertext outside the limits, an unknown
// key, and annotations other than those that it has returned. Rotate makes a new
// key; Lose removes the keys. A script changes responses, makes requests hang or
// fail, or makes the service unhealthy. A journal has all requests.
//
// It is no key management service: it authenticates no client, and its keys end
// with it. It imports no package of the service.
package kms

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// Annotation is the annotation of a data key. Its value is bound to the ciphertext.
const Annotation = "nonce.kms.simulator.example"

const (
	maxPlaintext = 1 << 10
	maxEntries   = 10_000
)

// Simulator is a plugin. It is safe for concurrent use.
type Simulator struct {
	faults  script.Faults[Fault]
	journal script.Journal[Entry]

	mu      sync.Mutex
	keys    map[string]cipher.AEAD
	current string
	seen    map[string]bool // ids of requests
}

var _ service.Service = (*Simulator)(nil)

// Fault is what happens to a request.
type Fault struct {
	Method  string // Status, Encrypt or Decrypt; empty: any
	Before  func() // runs before the request; it may wait
	Hang    bool   // there is no response until the client leaves
	Code    codes.Code
	Encrypt func(*service.EncryptResponse)  // changes the response
	Decrypt func(plaintext []byte) []byte   // changes the response
	Status  func(r *service.StatusResponse) // changes the response
}

// Entry is a request.
type Entry struct {
	Method string
	KeyID  string // of a request to decrypt
	Size   int    // of the plaintext or the ciphertext
}

// New returns a simulator with one key.
func New() *Simulator {
	s := &Simulator{journal: script.Journal[Entry]{Most: maxEntries}, keys: map[string]cipher.AEAD{}, seen: map[string]bool{}}
	s.Rotate()
	return s
}

// Rotate makes a new key, which encrypts from now on, and returns its id.
func (s *Simulator) Rotate() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)           // never fails
	block, _ := aes.NewCipher(key)  // never fails for this size
	aead, _ := cipher.NewGCM(block) // never fails for this cipher
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = "key-" + rand.Text()
	s.keys[s.current] = aead
	return s.current
}

// Lose removes all keys but the present one.
func (s *Simulator) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = map[string]cipher.AEAD{s.current: s.keys[s.current]}
}

// Fail adds a fault for a number of requests: 0 is one, and a negative number is all until
// Recover.
func (s *Simulator) Fail(fault Fault, times int) { s.faults.Add(fault, times) }

// Recover removes all faults.
func (s *Simulator) Recover() { s.faults.Clear() }

// Journal returns the requests since the last call, oldest first.
func (s *Simulator) Journal() []Entry { return s.journal.Take() }

// Serve serves on a listener, which is that of a UNIX socket, until the context ends.
func (s *Simulator) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer()
	api.RegisterKeyManagementServiceServer(server, service.NewGRPCService(listener.Addr().String(), time.Minute, s))
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// take returns the fault of a request. A request that hangs ends with its client.
func (s *Simulator) take(ctx context.Context, entry Entry) (Fault, error) {
	s.journal.Add(entry)
	fault := s.faults.Take(func(f Fault) bool { return f.Method == "" || f.Method == entry.Method })
	if fault.Before != nil {
		fault.Before()
	}
	if fault.Hang {
		<-ctx.Done()
		return fault, ctx.Err()
	}
	if fault.Code != codes.OK {
		return fault, status.Error(fault.Code, "the script says so")
	}
	return fault, nil
}

// Status implements service.Service.
func (s *Simulator) Status(ctx context.Context) (*service.StatusResponse, error) {
	fault, err := s.take(ctx, Entry{Method: "Status"})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: s.current}
	if fault.Status != nil {
		fault.Status(r)
	}
	return r, nil
}

// Encrypt implements service.Service.
func (s *Simulator) Encrypt(ctx context.Context, uid string, plaintext []byte) (*service.EncryptResponse, error) {
	fault, err := s.take(ctx, Entry{Method: "Encrypt", Size: len(plaintext)})
	if err != nil {
		return nil, err
	}
	if len(plaintext) == 0 || len(plaintext) > maxPlaintext {
		return nil, status.Errorf(codes.InvalidArgument, "the plaintext has %d bytes", len(plaintext))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.once(uid); err != nil {
		return nil, err
	}
	nonce := make([]byte, s.keys[s.current].NonceSize())
	_, _ = rand.Read(nonce) // never fails
	r := &service.EncryptResponse{
		Ciphertext: s.keys[s.current].Seal(nil, nonce, plaintext, nil), KeyID: s.current, Annotations: map[string][]byte{Annotation: nonce},
	}
	if fault.Encrypt != nil {
		fault.Encrypt(r)
	}
	return r, nil
}

// Decrypt implements service.Service.
func (s *Simulator) Decrypt(ctx context.Context, uid string, req *service.DecryptRequest) ([]byte, error) {
	fault, err := s.take(ctx, Entry{Method: "Decrypt", KeyID: req.KeyID, Size: len(req.Ciphertext)})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.once(uid); err != nil {
		return nil, err
	}
	key, nonce := s.keys[req.KeyID], req.Annotations[Annotation]
	if key == nil {
		return nil, status.Errorf(codes.NotFound, "there is no key %q", req.KeyID)
	}
	if len(req.Annotations) != 1 || len(nonce) != key.NonceSize() {
		return nil, status.Error(codes.InvalidArgument, "these are not the annotations of the data key")
	}
	// As most plugins do, it returns an error without a code.
	plaintext, err := key.Open(nil, nonce, req.Ciphertext, nil)
	if err != nil {
		return nil, errors.New("failed to decrypt")
	}
	if fault.Decrypt != nil {
		plaintext = fault.Decrypt(plaintext)
	}
	return plaintext, nil
}

// once returns an error unless an id of a request is new. The caller holds the lock.
func (s *Simulator) once(uid string) error {
	if uid == "" || s.seen[uid] {
		return status.Errorf(codes.InvalidArgument, "the request has the id %q, which is not new", uid)
	}
	s.seen[uid] = true
	return nil
}
