package notify_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

var (
	configMaps  = nf.Ref{Version: "v1", Kind: "ConfigMap"}
	deployments = nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// world is a source whose objects a test changes. It keeps every event, and
// those who follow read on from where they are.
type world struct {
	mu      sync.Mutex
	changed chan struct{} // closed when there is more
	targets map[string]notify.Target
	events  map[string][]notify.Event // by region
	refused map[string]error          // of following, by kind
	asked   []string                  // what was followed: "east ConfigMap"
	hidden  error                     // of Target
}

func newWorld() *world {
	return &world{
		changed: make(chan struct{}), targets: map[string]notify.Target{}, events: map[string][]notify.Event{}, refused: map[string]error{},
	}
}

func (w *world) change(edit func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit()
	close(w.changed)
	w.changed = make(chan struct{})
}

// instance makes an instance known; without kinds it is gone.
func (w *world) instance(id, region string, kinds ...nf.Ref) {
	w.change(func() {
		if len(kinds) == 0 {
			delete(w.targets, id)
			return
		}
		w.targets[id] = notify.Target{Region: region, Kinds: kinds}
	})
}

// put changes an object; del removes one of vnf-1's.
func (w *world) put(region, owner string, kind nf.Ref, name, value string) {
	object := map[string]any{
		"apiVersion": kind.APIVersion(), "kind": kind.Kind, "spec": map[string]any{"value": value},
		"metadata": map[string]any{"name": name, "namespace": "ns", "uid": "uid-" + name, "resourceVersion": time.Now().String()},
	}
	w.tell(region, notify.Event{Owner: owner, Ref: refTo(kind, name), Object: object})
}

func (w *world) del(kind nf.Ref, name string) {
	w.tell("east", notify.Event{Owner: "vnf-1", Ref: refTo(kind, name), Deleted: true})
}

func (w *world) tell(region string, e notify.Event) {
	w.change(func() { w.events[region] = append(w.events[region], e) })
}

func refTo(kind nf.Ref, name string) nf.Ref {
	kind.Namespace, kind.Name = "ns", name
	return kind
}

// Target implements notify.Source.
func (w *world) Target(_ context.Context, instance string) (notify.Target, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.targets[instance]
	if !ok && w.hidden == nil {
		return t, nf.E(nf.NotFound, "get", "VNF instance "+instance, nil)
	}
	return t, w.hidden
}

// Follow implements notify.Source.
func (w *world) Follow(ctx context.Context, region string, kind nf.Ref) iter.Seq2[notify.Event, error] {
	return func(yield func(notify.Event, error) bool) {
		w.mu.Lock()
		w.asked = append(w.asked, region+" "+kind.Kind)
		at := len(w.events[region])
		now := map[string]notify.Event{}
		for _, e := range w.events[region] {
			if now[e.Ref.Key()] = e; e.Deleted {
				delete(now, e.Ref.Key())
			}
		}
		refused := w.refused[kind.Kind]
		w.mu.Unlock()
		if refused != nil {
			yield(notify.Event{}, refused)
			return
		}
		batch := append(slices.Collect(maps.Values(now)), notify.Event{Synced: true})
		for {
			for _, e := range batch {
				if (e.Synced || e.Ref.Kind == kind.Kind) && !yield(e, nil) {
					return
				}
			}
			w.mu.Lock()
			batch, at = slices.Clone(w.events[region][at:]), len(w.events[region])
			changed, refused := w.changed, w.refused[kind.Kind]
			w.mu.Unlock()
			if refused != nil {
				yield(notify.Event{}, refused)
				return
			}
			if len(batch) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

// mailbox keeps what is sent, and answers as it is told.
type mailbox struct {
	mu     sync.Mutex
	posts  []post
	answer func(p post) (int, error)
}

type post struct {
	url    string
	header map[string]string
	body   string
	at     time.Time
}

// Send implements outbox.Send.
func (m *mailbox) Send(ctx context.Context, r outbox.Request) (int, error) {
	p := post{r.URL, r.Header, string(r.Body), time.Now()}
	m.mu.Lock()
	m.posts = append(m.posts, p)
	answer := m.answer
	m.mu.Unlock()
	if answer == nil {
		return 204, ctx.Err()
	}
	return answer(p)
}

func (m *mailbox) answers(f func(p post) (int, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = f
}

// take returns what was posted since the last time, in short.
func (m *mailbox) take(t *testing.T) []string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []string{}
	for _, p := range m.posts {
		out = append(out, short(t, p.body))
	}
	m.posts = nil
	return out
}

// short says "vnf-1/sub: +a=1 ~b=2 -c".
func short(t *testing.T, body string) string {
	t.Helper()
	type resource struct {
		Name   string `json:"name"`
		Status struct {
			Spec struct {
				Value string `json:"value"`
			} `json:"spec"`
		} `json:"status"`
	}
	var n struct {
		Instance     string `json:"instance-id"`
		Subscription string `json:"subscription-name"`
		Changes      struct {
			Created  []resource `json:"created"`
			Deleted  []resource `json:"deleted"`
			Modified []resource `json:"modified"`
		} `json:"resource-changes"`
	}
	if err := json.Unmarshal([]byte(body), &n); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString(n.Instance + "/" + n.Subscription + ":")
	for _, part := range []struct {
		sign string
		list []resource
	}{{"+", n.Changes.Created}, {"~", n.Changes.Modified}, {"-", n.Changes.Deleted}} {
		for _, r := range part.list {
			out.WriteString(" " + part.sign + r.Name + "=" + r.Status.Spec.Value)
		}
	}
	return out.String()
}

// stage is what most tests are played on: one instance, vnf-1, in the region
// east, with one object, a=1.
type stage struct {
	t     *testing.T
	kv    store.KV
	world *world
	mail  *mailbox
}

// play runs a test in virtual time.
func play(t *testing.T, act func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, kv: memory.New(), world: newWorld(), mail: &mailbox{}}
		s.world.instance("vnf-1", "east", configMaps)
		s.world.put("east", "vnf-1", configMaps, "a", "1")
		act(t, s)
	})
}

// notifier returns a notifier on the stage, which does not run yet.
func (s *stage) notifier(edit func(*notify.Config)) *notify.Notifier {
	s.t.Helper()
	cfg := notify.Config{Config: outbox.Config{KV: s.kv, NewID: rand.Text, Send: s.mail.Send}, Source: s.world}
	if edit != nil {
		edit(&cfg)
	}
	n, err := notify.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// start runs a notifier until stop is called, or the test ends.
func (s *stage) start(n *notify.Notifier) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			s.t.Errorf("Run: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	s.t.Cleanup(stop)
	synctest.Wait()
	return stop
}

// subscribe asks for notifications as "sub", and waits until they are served.
func (s *stage) subscribe(n *notify.Notifier, edit func(*nf.Subscription)) {
	s.t.Helper()
	sub := nf.Subscription{Instance: "vnf-1", Name: "sub", Callback: "http://receiver.example/status"}
	if edit != nil {
		edit(&sub)
	}
	if _, err := n.Subscribe(s.t.Context(), sub); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// later lets time pass.
func (s *stage) later(d time.Duration) {
	s.t.Helper()
	timer := time.NewTimer(d)
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
	synctest.Wait()
}

// wantMail compares what was posted since the last time.
func (s *stage) wantMail(reason string, want ...string) {
	s.t.Helper()
	synctest.Wait()
	if want == nil {
		want = []string{}
	}
	if d := cmp.Diff(want, s.mail.take(s.t)); d != "" {
		s.t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}

var errDown = errors.New("connection refused")
