// Package kmstest starts the simulator of a key management service for a test, on a
// UNIX socket in a folder of the test.
//
// It has no rules of its own: package simulator/kms does.
package kmstest

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/simulator/kms"
)

// Service is a service that serves until Stop, or the end of the test.
type Service struct {
	Plugin   *kms.Simulator
	Endpoint string // unix:///path
	Stop     func() // returns when the socket is closed
}

// Start starts a service with one key.
func Start(t testing.TB) Service {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s") // its path has at most 107 bytes
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := kms.New()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return Service{s, "unix://" + socket, stop}
}
