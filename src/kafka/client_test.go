package kafka_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

const (
	password     = "kafka-s3cret"
	notification = "SDC-DISTR-NOTIF-TOPIC-AUTO"
	deletion     = "SDC-DISTR-DELETE-TOPIC-AUTO"
)

func start(t *testing.T) *simulator.Simulator {
	t.Helper()
	s, err := simulator.New(simulator.Config{Users: map[string]string{"u": "p"}, KafkaUser: "multicloud", KafkaPassword: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, s *simulator.Simulator, edit ...func(*kafka.Config)) *kafka.Client {
	t.Helper()
	cfg := kafka.Config{Brokers: s.Brokers(), Group: "multicloud", Topics: []string{notification, deletion, "SDC-DISTR-NOT-THERE"},
		Credentials: func(context.Context) (string, nf.Secret, error) { return "multicloud", nf.Secret(password), nil }}
	for _, e := range edit {
		e(&cfg)
	}
	c, err := kafka.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// receive receives messages until stop is called. It sends markers until the client has
// joined its group, because a new group begins at the end of the topic.
func receive(t *testing.T, s *simulator.Simulator, c *kafka.Client, handle func(text string, stop func()) error) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	joined := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- c.Receive(ctx, func(_ context.Context, m kafka.Message) error {
			select {
			case <-joined:
			default:
				close(joined)
			}
			if string(m.Value) == "marker" {
				return nil
			}
			return handle(string(m.Value), stop)
		})
	}()
	for ctx.Err() == nil && !delay.For(ctx, 100*time.Millisecond, joined) {
		if err := s.Notify(t.Context(), []byte("marker")); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"one", "two", "last"} {
		if err := s.Notify(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return <-ended
}

// TestReceive receives a message again that was not handled, and none that was.
func TestReceive(t *testing.T) {
	t.Parallel()
	s := start(t)
	errDown := errors.New("the store is down")
	first := open(t, s)
	err := receive(t, s, first, func(text string, _ func()) error {
		if text == "two" {
			return errDown
		}
		return nil
	})
	if !errors.Is(err, errDown) {
		t.Fatalf("the error of the handler is returned: %v", err)
	}
	first.Close()
	var got []string
	err = receive(t, s, open(t, s), func(text string, stop func()) error {
		if got = append(got, text); text == "last" {
			stop()
		}
		return nil
	})
	if err != nil || len(got) < 2 || got[0] != "two" || got[1] != "last" {
		t.Errorf("only messages that were not handled are received again: %q, %v", got, err)
	}
}

// TestRefused connects without the rights.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	wrong := func(c *kafka.Config) {
		c.Credentials = func(context.Context) (string, nf.Secret, error) {
			return "multicloud", nf.Secret("wrong-" + password), nil
		}
	}
	refused := func(reason string, err error, whys ...string) {
		t.Helper()
		if nf.KindOf(err) != nf.Unreachable || !slices.Contains(whys, nf.ReasonOf(err)) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: got %v with the reason %q", reason, err, nf.ReasonOf(err))
		}
	}
	none := func(context.Context, kafka.Message) error { return nil }
	// The simulated broker closes the connection where Kafka says why.
	refused("the password is wrong", open(t, s, wrong).Receive(t.Context(), none), nf.ReasonUnauthorized, nf.ReasonUnavailable)
	refused("the ACL has one group", open(t, s, func(c *kafka.Config) { c.Group = "other" }).Receive(t.Context(), none), nf.ReasonForbidden)
	refused("the password is wrong", open(t, s, wrong).Send(t.Context(), kafka.Message{Topic: notification}), nf.ReasonUnauthorized, nf.ReasonUnavailable, nf.ReasonTimeout)
	if err := open(t, s).Send(t.Context(), kafka.Message{Topic: "ANOTHER-TOPIC"}); nf.ReasonOf(err) != nf.ReasonForbidden {
		t.Errorf("a message is not sent to another topic: %v", err)
	}
	if err := open(t, s).Send(t.Context(), kafka.Message{Topic: deletion}); err != nil {
		t.Error(err)
	}
}

// TestTLS connects to a broker with a certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	t.Cleanup(certified.Close)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, notification), kfake.TLS(&tls.Config{Certificates: certified.TLS.Certificates}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	for name, trusted := range map[string]bool{"trusted": true, "unknown authority": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roots := x509.NewCertPool()
			if trusted {
				roots.AddCert(certified.Certificate())
			}
			c, err := kafka.Open(kafka.Config{Brokers: broker.ListenAddrs(), Group: "g", Security: kafka.SSL, Roots: func(context.Context) *x509.CertPool { return roots }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			if err := c.Send(t.Context(), kafka.Message{Topic: notification, Value: []byte("x")}); (err == nil) != trusted {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	login := func(context.Context) (string, nf.Secret, error) { return "u", nil, nil }
	for name, wrong := range map[string]kafka.Config{
		"no brokers": {Group: "g", Credentials: login}, "no group": {Brokers: []string{"b:1"}, Credentials: login},
		"no user": {Brokers: []string{"b:1"}, Group: "g"}, "other security": {Brokers: []string{"b:1"}, Group: "g", Security: "GSSAPI"},
		"no port": {Brokers: []string{"b:x"}, Group: "g", Credentials: login},
	} {
		if _, err := kafka.Open(wrong); nf.KindOf(err) != nf.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// admin returns a client that looks at groups.
func admin(t *testing.T, s *simulator.Simulator) *kadm.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers()...), kgo.SASL(scram.Auth{User: "multicloud", Pass: password}.AsSha512Mechanism()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return kadm.NewClient(c)
}

// begun waits until the group has a position.
func begun(t *testing.T, s *simulator.Simulator) {
	t.Helper()
	admin := admin(t, s)
	for {
		offsets, err := admin.FetchOffsets(t.Context(), "multicloud")
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			t.Fatal(err)
		}
		if _, found := offsets.Lookup(notification, 0); found {
			return
		}
		delay.For(t.Context(), 10*time.Millisecond, nil)
	}
}

// TestBegin has messages that arrive before the first one was handled. A group begins at
// the end of a topic, and then skips none.
func TestBegin(t *testing.T) {
	t.Parallel()
	s := start(t)
	errDown := errors.New("the service is killed")
	send := func(text string) {
		if err := s.Notify(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	// first returns the first message of a member, which does not handle it.
	first := func(c *kafka.Client) (text string) {
		err := c.Receive(t.Context(), func(_ context.Context, m kafka.Message) error {
			text = string(m.Value)
			return errDown
		})
		if !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		return text
	}
	send("too early")
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() {
		stopped <- open(t, s).Receive(ctx, func(_ context.Context, m kafka.Message) error {
			t.Errorf("the group does not begin at the end: %s", m.Value)
			return nil
		})
	}()
	begun(t, s)
	stop()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	send("missed")
	for range 2 {
		if got := first(open(t, s)); got != "missed" {
			t.Errorf("the first message is %q", got)
		}
	}
	named := func(c *kafka.Config) { c.Member, c.Session = "the-only", 5*time.Minute }
	for range 2 {
		if got := first(open(t, s, named)); got != "missed" {
			t.Errorf("the first message is %q", got)
		}
		all, err := admin(t, s).DescribeGroups(t.Context(), "multicloud")
		if err != nil {
			t.Fatal(err)
		}
		if got := all["multicloud"].Members; len(got) != 1 || got[0].InstanceID == nil || *got[0].InstanceID != "the-only" {
			t.Errorf("a member with a name takes the place that it has left: %+v", got)
		}
	}
}
