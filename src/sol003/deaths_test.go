package sol003_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestDeaths lets a process die or stall at each call of a request and of its attempt.
func TestDeaths(t *testing.T) {
	failing := func(verb nf.Verb) func(*world) {
		return func(w *world) { w.engine.fail(map[nf.Verb]int{verb: 1}) }
	}
	lasting := func(w *world) { w.engine.takes = time.Hour }
	refusing := func(w *world) { w.engine.refusals[nf.Instantiate] = nf.E(nf.Conflict, "instantiate", "it", nil) }
	nothing := func(*world) {}
	cases := map[string]struct {
		request request
		before  func(*world) // the first attempt; nil: it is the one that is disturbed
		during  func(*world)
		repair  nf.Verb // of the disturbed attempt: Rollback, or else a retry
		cancel  string
		deaths  int
	}{
		"Instantiate":         {request: instantiation, during: nothing, deaths: 40},
		"InstantiateRefused":  {request: instantiation, during: refusing, deaths: 30},
		"InstantiateFails":    {request: instantiation, during: failing(nf.Instantiate), deaths: 40},
		"InstantiateCancel":   {request: instantiation, during: lasting, cancel: "FORCEFUL", deaths: 40},
		"InstantiateStop":     {request: instantiation, during: lasting, cancel: "GRACEFUL", deaths: 40},
		"InstantiateRetry":    {request: instantiation, before: failing(nf.Instantiate), during: nothing, deaths: 40},
		"InstantiateRollback": {request: instantiation, before: failing(nf.Instantiate), during: nothing, repair: nf.Rollback, deaths: 40},
		"Terminate":           {request: termination, during: nothing, deaths: 40},
		"TerminateRetry":      {request: termination, before: failing(nf.Terminate), during: nothing, deaths: 40},
		"Scale":               {request: scaling, during: nothing, deaths: 40},
		"ScaleRetry":          {request: scaling, before: failing(nf.Scale), during: nothing, deaths: 40},
		"ScaleRollback":       {request: scaling, before: failing(nf.Scale), during: nothing, repair: nf.Rollback, deaths: 40},
		"Heal":                {request: healing, during: nothing, deaths: 40},
		"HealRetry":           {request: healing, before: failing(nf.Heal), during: nothing, deaths: 40},
		"HealRollback":        {request: healing, before: failing(nf.Heal), during: nothing, repair: nf.Rollback, deaths: 40},
		"Modify":              {request: modifying, during: nothing, deaths: 25},
		"Connect":             {request: connecting, during: nothing, deaths: 40},
		"ConnectRollback":     {request: connecting, before: failing(nf.Upgrade), during: nothing, repair: nf.Rollback, deaths: 40},
		"Package":             {request: changing, during: nothing, deaths: 40},
		"PackageRetry":        {request: changing, before: failing(nf.Upgrade), during: nothing, deaths: 40},
		"PackageRollback":     {request: changing, before: failing(nf.Upgrade), during: nothing, repair: nf.Rollback, deaths: 40},
	}
	scenarios := map[string]operationtest.Scenario{}
	for name, tc := range cases {
		scenarios[name] = operationtest.Scenario{Deaths: tc.deaths, World: func(t *testing.T) operationtest.World {
			t.Helper()
			w := newWorld(t)
			m, stop := w.start(t)
			d := disturbed{vnf: prepared(t, m, tc.request), request: tc.request, repair: tc.repair, cancel: tc.cancel}
			if tc.before != nil {
				tc.before(w)
				d.occurrence = do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return tc.request.make(t.Context(), m, d.vnf, nf.RequestKey{}) }).ID
			}
			stop()
			tc.during(w)
			return w.crashing(t, d)
		}}
	}
	operationtest.Deaths(t, scenarios)
}

// disturbed is a request whose process may die.
type disturbed struct {
	vnf, occurrence string // the occurrence: that has failed before; empty: none
	request         request
	clouds          *clouds // nil: none
	repair          nf.Verb
	cancel          string // mode; empty: it is not cancelled
	nfvo            *nfvo  // nil: none
}

// make makes the request, and returns the attempt that it has started.
func (d disturbed) make(ctx context.Context, m *sol003.Manager, key nf.RequestKey) (nf.Operation, error) {
	switch {
	case d.occurrence == "":
		o, err := d.request.make(ctx, m, d.vnf, key)
		if err != nil {
			return nf.Operation{}, err
		}
		if d.cancel != "" {
			err = cancelled(ctx, m, o, d.cancel == "FORCEFUL")
		}
		return nf.Operation{ID: o.Attempts[0]}, err
	case d.repair == nf.Rollback:
		if err := m.Rollback(ctx, d.occurrence, key); err != nil {
			return nf.Operation{}, err
		}
	default:
		if err := m.Retry(ctx, d.occurrence, key); err != nil {
			return nf.Operation{}, err
		}
	}
	v, err := m.VNF(ctx, d.vnf)
	return nf.Operation{ID: v.LastOperation}, err
}

// cancelled cancels an occurrence that the engine has begun. It may be cancelled already.
func cancelled(ctx context.Context, m *sol003.Manager, o nf.Occurrence, forceful bool) (err error) {
	for o.State == nf.OccurrenceStarting {
		<-time.After(time.Second)
		if o, err = m.Occurrence(ctx, o.ID); err != nil {
			return err
		}
	}
	if err = m.Cancel(ctx, o.ID, forceful); nf.KindOf(err) == nf.Conflict {
		return nil
	}
	return err
}

// crashing returns the world for processes that may die.
func (w *world) crashing(t *testing.T, d disturbed) operationtest.World {
	t.Helper()
	return operationtest.World{
		KV: w.kv,
		Start: func(p *operationtest.Process) operationtest.Replica {
			m, stop := w.start(t, func(c *config) {
				c.Work = p.Config(w.kv)
				c.KV = c.Work.KV
				e := crashingEngine{w.engine, p}
				c.Changes, c.Repairs = e, e
				if d.clouds != nil {
					c.Clouds = crashingClouds{d.clouds, p}
				}
				if d.nfvo != nil {
					c.Granter = crashingNFVO{d.nfvo, p}
				}
			})
			return operationtest.Replica{
				Request: func(ctx context.Context, key nf.RequestKey) (nf.Operation, error) { return d.make(ctx, m, key) },
				Stop:    stop,
			}
		},
		Snapshot: func() any { return w.snapshot(t) },
		Unknown:  func() []string { return append(w.unknown(t), d.nfvo.unknown(t, w)...) },
	}
}

// unknown returns the instances that no VNF has.
func (w *world) unknown(t *testing.T) []string {
	t.Helper()
	known := map[string]bool{}
	for v, err := range store.NewTable[nf.VNF](w.kv, "vnfs/", "VNF").All(t.Context(), "") {
		must(t, err)
		known[v.ID] = v.Instantiated != nil || v.Occurrence != ""
	}
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.engine.instances)), func(id string) bool { return known[id] })
}

// snapshot is what a run leaves behind, without ids and times.
type snapshot struct {
	VNFs        []string
	Occurrences []string
	Ends        []string // of attempts
	Engine      []string // operations
	Pods        int
	Notices     []string
	Records     map[string]int // by the first part of their keys
}

func (w *world) snapshot(t *testing.T) snapshot {
	t.Helper()
	out := snapshot{Records: map[string]int{}}
	for v, err := range store.NewTable[nf.VNF](w.kv, "vnfs/", "VNF").All(t.Context(), "") {
		must(t, err)
		out.VNFs = append(out.VNFs, fmt.Sprintf("%s %q locked %t, occurrence %t", v.Package, described(v), v.Operation != "", v.Occurrence != ""))
	}
	for o, err := range store.NewTable[nf.Occurrence](w.kv, "occurrences/", "occurrence").All(t.Context(), "") {
		must(t, err)
		failure := ""
		if o.Failure != nil {
			failure = o.Failure.Kind.String()
		}
		out.Occurrences = append(out.Occurrences, fmt.Sprintf("%s %s %s, %d attempts, %d components, changed %s, cancel %t", o.Operation, o.State, failure, len(o.Attempts), len(o.VNFCs), o.Changed, o.Cancel))
	}
	for op, err := range store.NewTable[nf.Operation](w.kv, "operations/", "operation").All(t.Context(), "") {
		must(t, err)
		out.Ends = append(out.Ends, fmt.Sprint(op.Verb, " ", op.State))
	}
	for n, err := range store.NewTable[nf.Notice](w.kv, "notices/", "notice").All(t.Context(), "") {
		must(t, err)
		text := string(n.Kind)
		if n.Occurrence != nil {
			text = string(n.Occurrence.Operation) + " " + string(n.Occurrence.State)
		}
		out.Notices = append(out.Notices, text)
	}
	for key := range w.records(t) {
		table, _, _ := strings.Cut(key, "/")
		out.Records[table]++
	}
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	for _, op := range w.engine.ops {
		out.Engine = append(out.Engine, fmt.Sprint(op.Verb, " ", op.State))
	}
	for _, pods := range w.engine.pods {
		out.Pods += len(pods)
	}
	return out
}

// crashingEngine is the engine as a process reaches it that may die.
type crashingEngine struct {
	*engine

	process *operationtest.Process
}

func (e crashingEngine) call(what string, whole func() (nf.Operation, error)) (nf.Operation, error) {
	return operationtest.Call(e.process, what, whole, nil)
}

func (e crashingEngine) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	return e.call("instantiate", func() (nf.Operation, error) { return e.engine.Instantiate(ctx, req) })
}

func (e crashingEngine) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	return e.call("upgrade", func() (nf.Operation, error) { return e.engine.Upgrade(ctx, id, req) })
}

func (e crashingEngine) Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	return e.call("roll back", func() (nf.Operation, error) { return e.engine.Rollback(ctx, id, req) })
}

func (e crashingEngine) Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	return e.call("act", func() (nf.Operation, error) { return e.engine.Act(ctx, id, req) })
}

func (e crashingEngine) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	return e.call("terminate", func() (nf.Operation, error) { return e.engine.Terminate(ctx, id, req) })
}

func (e crashingEngine) Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	return e.call("retry", func() (nf.Operation, error) { return e.engine.Retry(ctx, operation, opts) })
}

func (e crashingEngine) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	return e.call("undo", func() (nf.Operation, error) { return e.engine.Undo(ctx, operation, opts) })
}

func (e crashingEngine) Stop(ctx context.Context, operation string) (nf.Operation, error) {
	return e.call("stop", func() (nf.Operation, error) { return e.engine.Stop(ctx, operation) })
}

func (e crashingEngine) Cancel(ctx context.Context, operation string) (nf.Operation, error) {
	return e.call("cancel", func() (nf.Operation, error) { return e.engine.Cancel(ctx, operation) })
}
