package openstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// Config configures Clouds.
type Config struct {
	Hosts    outbound.Hosts // that the operator allows in addition
	Timeout  time.Duration  // of one request; default one minute
	Poll     time.Duration  // between two looks at servers that start or are deleted; default 5 s
	Patience time.Duration  // for servers to start, and to be deleted; default 20 minutes

	// Connect returns the connections to a cloud; default: TCP to allowed addresses.
	Connect func(nf.OpenStack) (http.RoundTripper, error)
}

// Clouds are the OpenStack clouds that regions describe. It is safe for concurrent
// use.
//
// The errors of its methods are nf.Unreachable with a reason, if the cloud does not
// respond; nf.Forbidden if it rejects the credential or the request; nf.NotFound if
// an image, a flavor, a network or a security group does not exist; nf.Conflict;
// nf.TooLarge above a quota of ports, and nf.Forbidden above one of servers, which
// Nova reports so; nf.Unsupported if it lacks a service; and nf.Failed.
type Clouds struct{ cfg Config }

// New returns the clouds.
func New(cfg Config) *Clouds {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&cfg.Timeout, time.Minute}, {&cfg.Poll, 5 * time.Second}, {&cfg.Patience, 20 * time.Minute}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	c := &Clouds{cfg}
	if cfg.Connect == nil {
		c.cfg.Connect = c.connect
	}
	return c
}

// dialTime limits the time for one connection.
const dialTime = 10 * time.Second

// connect is the default of Config.Connect.
func (c *Clouds) connect(o nf.OpenStack) (http.RoundTripper, error) {
	security, err := security(o)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		TLSClientConfig: security, TLSHandshakeTimeout: dialTime, ForceAttemptHTTP2: true, MaxIdleConns: 4, IdleConnTimeout: time.Minute,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.cfg.Hosts.Dial(ctx, dialTime, network, address)
		},
	}, nil
}

// Login logs in at a cloud, and reads which services it has. It returns nf.Invalid for an
// address or a CA that is wrong, nf.Unsupported if the cloud lacks a service, and otherwise
// nf.Unreachable with a reason, as for a cluster: of a rejected credential, it is
// nf.ReasonUnauthorized, since it is not the caller who may not do this.
func (c *Clouds) Login(ctx context.Context, o nf.OpenStack) error {
	s, err := c.login(ctx, o)
	if err == nil {
		s.close()
		return nil
	}
	e, ok := errors.AsType[*nf.Error](err)
	if !ok || e.Kind == nf.Invalid || e.Kind == nf.Unsupported {
		return err
	}
	switch {
	case errors.Is(err, errPlain):
		e.Reason = nf.ReasonTLS
	case errors.Is(err, outbound.ErrNotAllowed):
		e.Reason = nf.ReasonNotAllowed
	case e.Kind == nf.Forbidden:
		e.Reason = cmp.Or(e.Reason, nf.ReasonForbidden)
	default:
		e.Reason = cmp.Or(e.Reason, nf.ReasonUnavailable)
	}
	e.Kind = nf.Unreachable
	return err
}

// Machines returns the machines of a group, ordered by name.
func (c *Clouds) Machines(ctx context.Context, o nf.OpenStack, g nf.MachineGroup) ([]nf.Machine, error) {
	s, err := c.login(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.machines(ctx, g)
}

// Create creates the machines of a group that do not exist. It does not wait until
// they run.
func (c *Clouds) Create(ctx context.Context, o nf.OpenStack, g nf.MachineGroup, names []string) error {
	s, err := c.login(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	return s.create(ctx, g, names)
}

// Await waits until machines run, and returns them in the order of their names. It
// returns nf.Failed with Nova's message if one of them fails, and nf.Timeout.
func (c *Clouds) Await(ctx context.Context, o nf.OpenStack, g nf.MachineGroup, names []string) ([]nf.Machine, error) {
	var out []nf.Machine
	err := c.poll(ctx, o, "start the machines of "+g.Name, func(ctx context.Context, s *session) (done bool, err error) {
		out, done, err = s.started(ctx, g, names)
		return done, err
	})
	return out, err
}

// Delete deletes machines of a group, and waits until they and their ports are gone.
// Without names it deletes all of the group.
func (c *Clouds) Delete(ctx context.Context, o nf.OpenStack, g nf.MachineGroup, names ...string) error {
	return c.poll(ctx, o, "delete the machines of "+g.Name, func(ctx context.Context, s *session) (done bool, err error) {
		return s.remove(ctx, g, names)
	})
}

// poll repeats a look at the cloud until it is done. It returns nf.Timeout after
// Config.Patience.
func (c *Clouds) poll(ctx context.Context, o nf.OpenStack, what string, look func(context.Context, *session) (bool, error)) error {
	s, err := c.login(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	late := nf.E(nf.Timeout, "wait for", "cloud "+s.subject, fmt.Errorf("it did not %s within %s", what, c.cfg.Patience))
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Patience, late)
	defer cancel()
	tick := time.NewTicker(c.cfg.Poll)
	defer tick.Stop()
	for {
		done, err := look(ctx, s)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case done || err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
