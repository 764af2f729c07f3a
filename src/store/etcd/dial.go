package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Keepalive probes: a node that fails silently is detected after the sum of
// these times, while a call waits for it. gRPC allows no earlier probe, and
// etcd none without a call.
const (
	probeAfter = 10 * time.Second
	probeTime  = 3 * time.Second
)

// reconnect returns the backoff for nodes that are unreachable. It is short, so
// that a recovered node is used soon. gRPC's default waits for up to two
// minutes.
func reconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		MinConnectTimeout: probeTime,
	})
}

// dial returns a client of an outside cluster. It distributes its calls over
// the nodes, and leaves out those that are unreachable. A read that a node does
// not answer is retried on the next; a write is not, because its result is
// unknown.
//
// With a user it requests a token, at most until the context ends; without one
// it does not wait for anything.
func dial(ctx context.Context, config Config) (*clientv3.Client, error) {
	var secure *tls.Config
	if config.tls() {
		var err error
		files := transport.TLSInfo{TrustedCAFile: config.CA, CertFile: config.Cert, KeyFile: config.Key}
		if secure, err = files.ClientConfig(); err != nil {
			return nil, nf.E(nf.Invalid, "read", "the certificates for etcd", err)
		}
	}
	// The client keeps its context, which must outlive this one.
	kept, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            config.Endpoints,
		TLS:                  secure,
		Username:             config.User,
		Password:             string(config.Password),
		DialKeepAliveTime:    probeAfter,
		DialKeepAliveTimeout: probeTime,
		DialOptions:          []grpc.DialOption{reconnect(), grpc.WithChainUnaryInterceptor(once)},
		Context:              kept,
		// The client logs each attempt as a warning; the result is returned anyway.
		Logger: logger(config.Logger, zapcore.ErrorLevel),
	})
	return client, translate(ctx, "open", "etcd", err)
}

// once is called for each attempt, below the client's retries. The client
// retries any call that is answered with the end of a context other than the
// caller's (https://github.com/etcd-io/etcd/issues/18424), such as that of a
// server or of a proxy. A write must not be retried, because it may have been
// carried out. If the caller's own context has ended, once keeps the message
// that says what gRPC was waiting for.
//
//nolint:revive // argument-limit: it is a grpc.UnaryClientInterceptor
func once(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	answer := status.Convert(err)
	if answer.Code() != codes.Canceled && answer.Code() != codes.DeadlineExceeded {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("%w: %s", ended, answer.Message())
	}
	if method == etcdserverpb.KV_Txn_FullMethodName {
		return status.Error(codes.Unavailable, answer.Message())
	}
	return err
}
