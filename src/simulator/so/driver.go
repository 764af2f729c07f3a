package so

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

const (
	defaultInterval = 15 * time.Second  // SO's interval between polls
	defaultLimit    = 118 * time.Minute // SO's time limit of a stack
	maxEntries      = 100_000
	maxBody         = 32 << 20 // bytes of a response
	maxShown        = 400      // bytes of a response in an error
)

// Server is a server that SO sends requests to.
type Server struct {
	URL            string       // without a path
	User, Password string       // of Basic authentication; empty: none
	Token          string       // bearer token, instead of a user
	Client         *http.Client // one without a time limit by default
}

// Config describes a driver.
type Config struct {
	Service  Server
	AAI      Server
	Interval time.Duration     // between polls; 15 s by default, as in SO
	Limit    time.Duration     // of a poll; 118 minutes by default, as in SO
	Report   func(line string) // gets a line after each step; nil: none
}

// Driver runs SO's flows. It is safe for concurrent use.
type Driver struct {
	cfg     Config
	faults  script.Faults[Fault]
	journal script.Journal[Entry]
}

// New returns a driver. It sends no request.
func New(cfg Config) (*Driver, error) {
	for name, server := range map[string]Server{"the service": cfg.Service, "A&AI": cfg.AAI} {
		at, err := url.Parse(server.URL)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return nil, fmt.Errorf("cannot simulate SO: the URL of %s is not http://HOST:PORT", name)
		}
	}
	for _, server := range []*Server{&cfg.Service, &cfg.AAI} {
		if server.Client == nil {
			server.Client = new(http.Client)
		}
	}
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Limit <= 0 {
		cfg.Limit = defaultLimit
	}
	if cfg.Report == nil {
		cfg.Report = func(string) {}
	}
	return &Driver{cfg: cfg, journal: script.Journal[Entry]{Most: maxEntries}}, nil
}

// Fault runs code at requests.
type Fault struct {
	Method string // of the requests; empty: of any
	Path   string // text in their URLs; empty: any
	Times  int    // requests that it applies to; 1 by default, and all until Repair if negative
	Before func() // runs before the request is sent
	After  func() // runs after the response was read
}

// Script adds faults. A request takes the first one that applies to it.
func (d *Driver) Script(faults ...Fault) {
	for _, f := range faults {
		d.faults.Add(f, f.Times)
	}
}

// Repair removes all faults.
func (d *Driver) Repair() { d.faults.Clear() }

// Entry is a request in the journal.
type Entry struct {
	Step   string
	Method string
	URL    string
	Body   []byte
	Status int // 0 if there was no response
}

// Journal returns the requests since the last call, oldest first; at most the last
// 100,000.
func (d *Driver) Journal() []Entry { return d.journal.Take() }

// Difference is the error of a response that SO does not accept.
type Difference struct {
	Step    string
	Request string // its method and its URL
	What    string // differs
}

func (e *Difference) Error() string { return e.Step + ": " + e.Request + ": " + e.What }

// step is one step of a flow. Its name is a part of errors.
type step struct {
	d    *Driver
	name string
}

func (d *Driver) step(name string) step { return step{d, name} }

// done reports the end of the step.
func (s step) done(format string, args ...any) {
	s.d.cfg.Report(s.name + ": " + fmt.Sprintf(format, args...))
}

// reply is the response to a request.
type reply struct {
	step     step
	request  string
	status   int
	body     []byte
	repeated bool // the request was sent more than once, so an attempt before may have had an effect
}

// differs returns the error of a response that is not acceptable.
func (r reply) differs(format string, args ...any) error {
	return &Difference{Step: r.step.name, Request: r.request, What: fmt.Sprintf(format, args...)}
}

// want returns an error unless the response has one of the statuses.
func (r reply) want(statuses ...int) error {
	if slices.Contains(statuses, r.status) {
		return nil
	}
	return r.differs("status %d, want %v: %s", r.status, statuses, bytes.TrimSpace(r.body[:min(len(r.body), maxShown)]))
}

// read decodes a response as a client that ignores unknown fields.
func (r reply) read(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return r.differs("%v in %s", err, r.body[:min(len(r.body), maxShown)])
	}
	return nil
}

// strictly decodes a response as a client to which an unknown field is a failure.
func (r reply) strictly(into any) error {
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errors.New("a second document")
	}
	if err != nil {
		return r.differs("%v in %s", err, r.body[:min(len(r.body), maxShown)])
	}
	return nil
}

// message is a request.
type message struct {
	method  string
	path    string // with its query
	body    any    // sent as JSON; nil: none
	headers map[string]string
}

// send sends a request.
func (s step) send(ctx context.Context, server Server, m message) (reply, error) {
	var content []byte
	if m.body != nil {
		var err error
		if content, err = json.Marshal(m.body); err != nil {
			return reply{}, fmt.Errorf("%s: cannot write the body of %s %s: %w", s.name, m.method, m.path, err)
		}
	}
	r := reply{step: s, request: m.method + " " + m.path}
	fault := s.d.faults.Take(func(f Fault) bool {
		return (f.Method == "" || f.Method == m.method) && strings.Contains(m.path, f.Path)
	})
	if fault.Before != nil {
		fault.Before()
	}
	err := r.fill(ctx, server, m, content)
	s.d.journal.Add(Entry{Step: s.name, Method: m.method, URL: server.URL + m.path, Body: content, Status: r.status})
	if fault.After != nil {
		fault.After()
	}
	if err != nil {
		return r, fmt.Errorf("%s: cannot send %s: %w", s.name, r.request, err)
	}
	return r, nil
}

// fill sends the request and reads its response.
func (r *reply) fill(ctx context.Context, server Server, m message, content []byte) error {
	req, err := http.NewRequestWithContext(ctx, m.method, strings.TrimSuffix(server.URL, "/")+m.path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}
	switch {
	case server.Token != "":
		req.Header.Set("Authorization", "Bearer "+server.Token)
	case server.User != "":
		req.SetBasicAuth(server.User, server.Password)
	}
	for name, value := range m.headers {
		req.Header.Set(name, value)
	}
	resp, err := server.Client.Do(req)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the request
	}
	defer resp.Body.Close()
	r.status, r.repeated = resp.StatusCode, resp.Header.Get(script.Repeated) != ""
	if r.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err != nil {
		return fmt.Errorf("cannot read the response: %w", err)
	}
	return nil
}

// poll calls look at the interval of SO until it returns true or an error.
func (s step) poll(ctx context.Context, look func(context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, s.d.cfg.Limit)
	defer cancel()
	for {
		done, err := look(limited)
		if done || err != nil {
			return err
		}
		if !script.Hold(limited, nil, s.d.cfg.Interval) {
			return fmt.Errorf("%s: it takes longer than %s: %w", s.name, s.d.cfg.Limit, limited.Err())
		}
	}
}
