// Command mesh is the workload of the lab's test of Istio: a gRPC server and its client. From the mesh they get what a
// sidecar proxy would: the other side's address, the trusted authorities, and their own certificates. Envoy is
// available only as its project's images; a program that uses xDS directly needs none, and uses the same control plane.
//
//	mesh serve PORT     serve, with mutual TLS if the mesh requires it
//	mesh call TARGET    call once, and print the identities of both sides; xds:///HOST:PORT uses the mesh
//	mesh plain TARGET   call once without TLS, as a client outside of the mesh
//	mesh tls TARGET     call once with TLS, without a client certificate
//	mesh wait           do nothing until stopped
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscredentials "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/health"
	service "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds"
)

const (
	patience = 30 * time.Second
	nobody   = "nobody"
	seen     = "who-called" // response header with the caller's identity
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mesh:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "wait":
		<-ctx.Done()
		return nil
	case len(args) == 2 && args[0] == "serve":
		return serve(ctx, args[1])
	case len(args) == 2 && args[0] == "call":
		given, err := xdscredentials.NewClientCredentials(xdscredentials.ClientOptions{FallbackCreds: insecure.NewCredentials()})
		if err != nil {
			return err
		}
		return call(ctx, args[1], given)
	case len(args) == 2 && args[0] == "plain":
		return call(ctx, args[1], insecure.NewCredentials())
	case len(args) == 2 && args[0] == "tls":
		// The server's identity does not matter: the call must be rejected for the missing client certificate.
		return call(ctx, args[1], credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})) //nolint:gosec // see above
	default:
		return errors.New("say serve PORT, call TARGET, plain TARGET, tls TARGET or wait")
	}
}

func serve(ctx context.Context, port string) error {
	given, err := xdscredentials.NewServerCredentials(xdscredentials.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		return err
	}
	server, err := xds.NewGRPCServer(grpc.Creds(given), grpc.UnaryInterceptor(tell))
	if err != nil {
		return fmt.Errorf("cannot take the mesh's configuration: %w", err)
	}
	service.RegisterHealthServer(server, health.NewServer())
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", "0.0.0.0:"+port)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
		server.Stop()
		return nil
	case err := <-done:
		return err
	}
}

// tell adds the caller's identity to the response.
func tell(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	caller := nobody
	if other, ok := peer.FromContext(ctx); ok {
		caller = identity(other)
	}
	if err := grpc.SetHeader(ctx, metadata.Pairs(seen, caller)); err != nil {
		return nil, err
	}
	fmt.Println("called by", caller)
	return next(ctx, request)
}

func call(ctx context.Context, target string, given credentials.TransportCredentials) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(given))
	if err != nil {
		return err
	}
	defer conn.Close()
	var (
		other  peer.Peer
		header metadata.MD
	)
	if _, err := service.NewHealthClient(conn).Check(ctx, &service.HealthCheckRequest{}, grpc.Peer(&other), grpc.Header(&header)); err != nil {
		return fmt.Errorf("%s did not answer: %w", target, err)
	}
	caller := nobody
	if values := header.Get(seen); len(values) > 0 {
		caller = values[0]
	}
	fmt.Printf("server %s client %s\n", identity(&other), caller)
	return nil
}

// identity returns the SPIFFE ID of the other side of a connection.
func identity(other *peer.Peer) string {
	info, ok := other.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 || len(info.State.PeerCertificates[0].URIs) == 0 {
		return nobody
	}
	return info.State.PeerCertificates[0].URIs[0].String()
}
