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

// A node that is gone without a word is noticed after these while a call waits
// for it. gRPC allows no earlier probe, and etcd none without a call.
const (
	probeAfter = 10 * time.Second
	probeTime  = 3 * time.Second
)

// reconnect is how a node is called that could not be: often enough to be back
// soon after it is. Left to itself, gRPC would wait for up to two minutes.
func reconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		MinConnectTimeout: probeTime,
	})
}

// dial returns a client of an outside cluster. It takes its calls to the nodes
// in turn, and leaves out those that it cannot reach. A read that a node does
// not answer goes to the next; a write does not, because nobody knows what has
// become of it.
//
// With a user it asks for a token, for as long as the context lasts; without
// one it does not wait for anything.
func dial(ctx context.Context, config Config) (*clientv3.Client, error) {
	var secure *tls.Config
	if config.tls() {
		var err error
		files := transport.TLSInfo{TrustedCAFile: config.CA, CertFile: config.Cert, KeyFile: config.Key}
		if secure, err = files.ClientConfig(); err != nil {
			return nil, nf.E(nf.Invalid, "read", "the certificates for etcd", err)
		}
	}
	// The client keeps its context, and must not end with this one.
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
		// It warns of each attempt; what comes of them is returned.
		Logger: logger(config.Logger, zapcore.ErrorLevel),
	})
	return client, translate(ctx, "open", "etcd", err)
}

// once stands behind the client's retries and sees each attempt. The client
// repeats any call that is answered with the end of a context which is not the
// caller's (https://github.com/etcd-io/etcd/issues/18424), be it a server's or
// that of a proxy on the way: a write must not be, because it may have been
// carried out. And where the caller's own context has ended, it keeps what
// gRPC was waiting for.
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
