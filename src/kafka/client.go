package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const (
	dialTime       = 10 * time.Second
	sendTime       = 10 * time.Second // until the broker acknowledges a message
	commitTime     = 10 * time.Second
	pollTime       = 5 * time.Second
	sessionTime    = 45 * time.Second
	rebalanceTime  = 5 * time.Minute
	maxBrokerBytes = 8 << 20 // of a response
)

// The values of Config.Security.
const (
	Plaintext     = "PLAINTEXT"
	SASLPlaintext = "SASL_PLAINTEXT"
	SSL           = "SSL"
	SASLSSL       = "SASL_SSL"
)

// Securities returns the values of Config.Security.
func Securities() []string { return []string{Plaintext, SASLPlaintext, SSL, SASLSSL} }

// Config configures a client. Brokers and Group are required.
type Config struct {
	Brokers     []string // host:port
	Security    string   // default SASLPlaintext; SASL is SCRAM-SHA-512
	Credentials func(ctx context.Context) (user string, password nf.Secret, err error)
	Roots       func(ctx context.Context) *x509.CertPool // of TLS; nil: those of the system
	ClientID    string
	Group       string
	Topics      []string      // to receive from
	Session     time.Duration // without a heartbeat before the group continues without this client; 45 s by default
	Member      string        // name in the group, for a client that no other runs beside: after a crash it continues at once; empty: none
}

// Message is a message of a topic.
type Message struct {
	Topic string
	Key   []byte
	Value []byte
}

// Client is a connection to Kafka. It is safe for concurrent use, except Receive.
type Client struct {
	of  *kgo.Client // not a member of the group
	cfg Config
}

// Open returns a client, which the caller must close. It connects later. It returns
// nf.Invalid for a wrong configuration.
func Open(cfg Config) (*Client, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, nf.E(nf.Invalid, "connect to", "Kafka", err)
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, nf.E(nf.Invalid, "connect to", "Kafka", err)
	}
	return &Client{c, cfg}, nil
}

func (c Config) options() ([]kgo.Opt, error) {
	if c.Security == "" {
		c.Security = SASLPlaintext
	}
	switch {
	case len(c.Brokers) == 0 || c.Group == "":
		return nil, errors.New("brokers and a group are required")
	case !slices.Contains(Securities(), c.Security):
		return nil, fmt.Errorf("the security is one of %q", Securities())
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID(c.ClientID), kgo.RecordDeliveryTimeout(sendTime), kgo.BrokerMaxReadBytes(maxBrokerBytes), kgo.FetchMaxBytes(maxBrokerBytes / 2), kgo.Dialer(c.dial),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DisableClientMetrics(),
	}
	if c.Security == SASLPlaintext || c.Security == SASLSSL {
		if c.Credentials == nil {
			return nil, errors.New("a user and a password are required")
		}
		opts = append(opts, kgo.SASL(c.login()))
	}
	return opts, nil
}

// login reads the credentials for each connection.
func (c Config) login() sasl.Mechanism {
	return scram.Sha512(func(ctx context.Context) (scram.Auth, error) {
		user, password, err := c.Credentials(ctx)
		return scram.Auth{User: user, Pass: string(password)}, err
	})
}

func (c Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTime}
	if c.Security != SSL && c.Security != SASLSSL {
		return dialer.DialContext(ctx, network, address)
	}
	limited, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Roots != nil {
		config.RootCAs = c.Roots(ctx)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(limited, network, address)
}

// Close ends the connections.
func (c *Client) Close() { c.of.Close() }

// ping returns an error if no broker can be used.
func (c *Client) ping(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := c.of.Ping(limited); err != nil && ctx.Err() == nil {
		return fail("connect to", "Kafka", err)
	}
	return nil
}

// Send sends a message, and returns when the broker has acknowledged it, or after
// 10 seconds.
func (c *Client) Send(ctx context.Context, m Message) error {
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err := c.of.ProduceSync(limited, &kgo.Record{Topic: m.Topic, Key: m.Key, Value: m.Value}).FirstErr()
	if err != nil {
		return fail("send", "a message to "+m.Topic, err)
	}
	return nil
}

// fail returns nf.Unreachable, with a reason.
func fail(op, subject string, err error) error {
	e := &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: outbound.Reason(err), Err: outbound.Plain(err)}
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		e.Reason, e.Err = nf.ReasonUnauthorized, errors.New("the broker rejected the user or the password")
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		e.Reason, e.Err = nf.ReasonForbidden, errors.New("the broker does not allow the user to use the topic or the group")
	case e.Reason == "":
		e.Reason = nf.ReasonUnavailable
	}
	return e
}
