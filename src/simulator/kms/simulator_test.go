package kms_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kms/apis/v2"

	"github.com/multicloud-k8s/k8splugin/src/simulator/kms"
)

// connect returns a client of a simulator.
func connect(t *testing.T, s *kms.Simulator) api.KeyManagementServiceClient {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return api.NewKeyManagementServiceClient(conn)
}

func TestSimulator(t *testing.T) {
	t.Parallel()
	s := kms.New()
	client := connect(t, s)
	state, err := client.Status(t.Context(), &api.StatusRequest{})
	if err != nil || state.Version != "v2" || state.Healthz != "ok" || state.KeyId == "" {
		t.Fatalf("the status is %v, %v", state, err)
	}
	sealed, err := client.Encrypt(t.Context(), &api.EncryptRequest{Plaintext: []byte("data key"), Uid: "1"})
	if err != nil || sealed.KeyId != state.KeyId {
		t.Fatalf("encrypted: %v, %v", sealed, err)
	}
	if next := s.Rotate(); next == state.KeyId {
		t.Error("the new key has the id of the former one")
	}
	request := func(edit func(*api.DecryptRequest)) *api.DecryptRequest {
		r := &api.DecryptRequest{Ciphertext: sealed.Ciphertext, KeyId: sealed.KeyId, Annotations: map[string][]byte{kms.Annotation: sealed.Annotations[kms.Annotation]}}
		edit(r)
		return r
	}
	cases := map[string]struct {
		reason string
		uid    string
		edit   func(*api.DecryptRequest)
		want   codes.Code
	}{
		"Same":        {"a key that was rotated decrypts", "2", func(*api.DecryptRequest) {}, codes.OK},
		"NoID":        {"the log of the service names requests", "", func(*api.DecryptRequest) {}, codes.InvalidArgument},
		"SameID":      {"the id of a request is not that of another", "1", func(*api.DecryptRequest) {}, codes.InvalidArgument},
		"Key":         {"a key that never was", "3", func(r *api.DecryptRequest) { r.KeyId = "x" }, codes.NotFound},
		"Other":       {"another key of the service", "4", func(r *api.DecryptRequest) { r.KeyId = s.Rotate() }, codes.Unknown},
		"Ciphertext":  {"the ciphertext is authenticated", "5", func(r *api.DecryptRequest) { r.Ciphertext = []byte("another ciphertext of enough bytes") }, codes.Unknown},
		"Annotation":  {"the annotation is needed", "6", func(r *api.DecryptRequest) { r.Annotations = nil }, codes.InvalidArgument},
		"Annotations": {"another one is a mistake", "7", func(r *api.DecryptRequest) { r.Annotations["x.example"] = nil }, codes.InvalidArgument},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(tc.edit)
			r.Uid = tc.uid
			got, err := client.Decrypt(t.Context(), r)
			if status.Code(err) != tc.want || err == nil && string(got.Plaintext) != "data key" {
				t.Errorf("%s: %q, %v, want code %s", tc.reason, got.GetPlaintext(), err, tc.want)
			}
		})
	}
	for _, size := range []int{0, 1025} {
		if _, err := client.Encrypt(t.Context(), &api.EncryptRequest{Plaintext: make([]byte, size), Uid: "8"}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a plaintext of %d bytes: %v", size, err)
		}
	}
	s.Lose()
	if _, err := client.Decrypt(t.Context(), request(func(r *api.DecryptRequest) { r.Uid = "9" })); status.Code(err) != codes.NotFound {
		t.Errorf("a key that was lost: %v", err)
	}
	s.Fail(kms.Fault{Method: "Encrypt", Code: codes.Unavailable}, 0)
	if _, err := client.Encrypt(t.Context(), &api.EncryptRequest{Plaintext: []byte("a"), Uid: "10"}); status.Code(err) != codes.Unavailable {
		t.Errorf("a scripted fault: %v", err)
	}
	if got := s.Journal(); len(got) == 0 || got[0].Method != "Status" || got[1] != (kms.Entry{Method: "Encrypt", Size: 8}) {
		t.Errorf("the journal begins with %v", got)
	}
}
