package site_test

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// world is a store with the dependencies of Sites: a catalog of regions, hosts
// that answer as the test asks, and a runner that does.
type world struct {
	kv     store.KV
	ledger *operation.Ledger // of the replica that was started last

	mu         sync.Mutex
	regions    map[string]nf.Region
	users      map[string][]string // of regions
	stuck      map[string]error    // why an instance cannot be terminated
	terminated []string
	jobs       []site.Job
	reached    []string
	runs       int
	alive      map[*operationtest.Process]int // unfinished runs; nil: of a process that does not die
	busy       map[string]string              // instances, with what runs on them

	sky   *sky                                                       // nil: no clouds
	mute  bool                                                       // a run leaves no kubeconfig
	probe error                                                      // of a registration
	reach func(h nf.SiteHost) (string, error)                        // nil: every host answers
	play  func(ctx context.Context, job site.Job, tell teller) error // nil: everything succeeds
}

type teller func(site.Event) bool

func newWorld() *world {
	return &world{kv: memory.New(), regions: map[string]nf.Region{}, users: map[string][]string{}, alive: map[*operationtest.Process]int{}}
}

// config configures Sites and their workers. The workers have the same store
// and ids.
type config struct {
	site.Config
	Work operation.Config
}

// start runs a replica until the test ends or the returned function is called.
func (w *world) start(t *testing.T, edit ...func(*config)) (s *site.Sites, stop func()) {
	t.Helper()
	cfg := config{Config: site.Config{
		KV: w.kv, Regions: w, Instances: w, ProbeHost: w.probeHost, Runners: map[nf.SiteDriver]site.Runner{nf.SiteByAnsible: w, nf.SiteByScript: w},
		NewID: rand.Text,
	}}
	if w.sky != nil {
		cfg.Clouds, cfg.Holds = w.sky, w
	}
	for _, f := range edit {
		f(&cfg)
	}
	cfg.Work.KV, cfg.Work.NewID = cfg.KV, cfg.NewID
	work, err := operation.New(cfg.Work)
	must(t, err)
	cfg.Workers, w.ledger = work, work.Ledger()
	s, err = site.New(cfg.Config)
	must(t, err)
	return s, operationtest.Run(t, work)
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.regions[id]
	if !ok {
		return r, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	return r, nil
}

func (w *world) Register(_ context.Context, r nf.Region) (nf.Region, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.regions[r.ID]; ok {
		return r, nf.E(nf.Exists, "register", "cloud region "+r.ID, nil)
	}
	if w.probe == nil {
		w.regions[r.ID] = r
	}
	return r, w.probe
}

func (w *world) UpdateRegion(_ context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.regions[id]
	err := edit(&r)
	w.regions[id] = r
	return r, err
}

func (w *world) RemoveRegion(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if users := w.users[id]; len(users) > 0 {
		return nf.E(nf.Conflict, "remove", "cloud region "+id, errors.New("it is used by "+strings.Join(users, ", ")))
	}
	delete(w.regions, id)
	return nil
}

// Terminate implements site.Instances. Its operations have succeeded at once.
func (w *world) Terminate(_ context.Context, id string) (nf.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.busy[id]; other != "" {
		return nf.Operation{}, &nf.Error{Kind: nf.Busy, Op: "terminate", Subject: "VNF instance " + id, Operation: other}
	}
	if err := w.stuck[id]; err != nil {
		return nf.Operation{}, err
	}
	w.terminated = append(w.terminated, id)
	for region, users := range w.users {
		w.users[region] = slices.DeleteFunc(users, func(user string) bool { return user == id })
	}
	return nf.Operation{ID: "terminate-" + id, Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Verb: nf.Terminate}, nil
}

// Wait implements site.Instances.
func (w *world) Wait(_ context.Context, operation string) (nf.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.busy, func(_, other string) bool { return other == operation })
	return nf.Operation{ID: operation, State: nf.Succeeded}, nil
}

// use sets the users of the region edge.
func (w *world) use(users ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users["edge"] = users
}

// Hold implements site.Holds.
func (w *world) Hold(_ context.Context, h nf.Holding) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.regions[h.Region]; !there {
		return nf.E(nf.NotFound, "hold", "cloud region "+h.Region, nil)
	}
	if user := h.Holder.Subject.String(); !slices.Contains(w.users[h.Region], user) {
		w.users[h.Region] = append(w.users[h.Region], user)
	}
	return nil
}

// Release implements site.Holds.
func (w *world) Release(_ context.Context, h nf.Holding) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users[h.Region] = slices.DeleteFunc(w.users[h.Region], func(user string) bool { return user == h.Holder.Subject.String() })
	return nil
}

// userOf returns a user of a region: "network/x", or an instance by its id alone.
func userOf(text string) nf.Subject {
	if strings.Contains(text, "/") {
		return nf.SubjectOf(text)
	}
	return nf.Subject{Kind: nf.InstanceSubject, ID: text}
}

func (w *world) Users(_ context.Context, of nf.Holding) iter.Seq2[nf.Subject, error] {
	w.mu.Lock()
	defer w.mu.Unlock()
	users := slices.Clone(w.users[of.Region])
	return func(yield func(nf.Subject, error) bool) {
		for _, id := range users {
			if !yield(userOf(id), nil) {
				return
			}
		}
	}
}

func (w *world) probeHost(_ context.Context, h nf.SiteHost, _ nf.SiteSecrets) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached = append(w.reached, h.Name)
	if w.reach != nil {
		return w.reach(h)
	}
	return hostKey, nil
}

// Run implements site.Runner.
func (w *world) Run(ctx context.Context, job site.Job) iter.Seq2[site.Event, error] {
	return w.runBy(ctx, nil, job)
}

func (w *world) runBy(ctx context.Context, process *operationtest.Process, job site.Job) iter.Seq2[site.Event, error] {
	return func(yield func(site.Event, error) bool) {
		w.mu.Lock()
		w.jobs = append(w.jobs, job)
		w.runs++
		w.alive[process]++
		play := w.play
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			w.alive[process]--
			w.mu.Unlock()
		}()
		tell := func(e site.Event) bool { return yield(e, nil) }
		if play != nil {
			if err := play(ctx, job, tell); err != nil {
				yield(site.Event{}, err)
				return
			}
		}
		if job.Action == site.Build && !w.mute {
			tell(site.Event{Kubeconfig: nf.Secret(kubeconfig)})
		}
	}
}

func (w *world) started() []site.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.jobs)
}

// underWay returns the number of unfinished runs. Those of a stalled process do not count:
// it learns late that another one has ended the operation.
func (w *world) underWay() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for process, runs := range w.alive {
		if process == nil || !process.Stalled() {
			n += runs
		}
	}
	return n
}

const (
	hostKey    = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKs"
	kubeconfig = "apiVersion: v1\nusers: [{user: {token: 0123456789abcdef0123456789abcdef0123}}]\n"
)

func host(name string, role nf.SiteRole) nf.SiteHost {
	return nf.SiteHost{Name: name, Address: name + ".example.com", Port: 22, User: "debian", Key: hostKey, Role: role}
}

// request asks for a site of two hosts.
func request(edit ...func(*nf.SiteRequest)) nf.SiteRequest {
	r := nf.SiteRequest{
		Site: nf.Site{
			ID: "edge", Region: "edge", Driver: nf.SiteByAnsible, Roles: []string{"multus"},
			Hosts: []nf.SiteHost{host("n1", nf.ControlPlane), host("n2", nf.Worker)},
		},
		Secrets: nf.SiteSecrets{Password: nf.Secret("hunter22"), Secrets: map[string]nf.Secret{"registry_password": nf.Secret("s3cret-registry")}},
	}
	for _, f := range edit {
		f(&r)
	}
	return r
}

// end follows an operation to its end.
func end(t *testing.T, s *site.Sites, op nf.Operation) (nf.Operation, []nf.LogEntry) {
	t.Helper()
	var events []nf.LogEntry
	for u, err := range s.Operations().Follow(t.Context(), op.Subject.ID, op.ID, 0) {
		must(t, err)
		if u.Operation != nil {
			op = *u.Operation
		} else {
			events = append(events, u.Entry)
		}
	}
	if !op.State.Final() {
		t.Fatalf("operation %s was followed to %s", op.ID, op.State)
	}
	return op, events
}

// build makes the site, which succeeds.
func build(t *testing.T, s *site.Sites) {
	t.Helper()
	op, err := s.Create(t.Context(), request())
	must(t, err)
	if op, _ = end(t, s, op); op.State != nf.Succeeded {
		t.Fatalf("the build ended %s: %+v", op.State, op.Failure)
	}
}

// secrets are what must never be seen.
func secrets() []string {
	return []string{"hunter22", "s3cret-registry", "0123456789abcdef0123456789abcdef0123"}
}

func wantNoSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range secrets() {
		if strings.Contains(text, secret) {
			t.Errorf("%s tells the secret %s:\n%s", what, secret, text)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, reason string, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), kind)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}
