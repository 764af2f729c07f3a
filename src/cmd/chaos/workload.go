package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// The verbs of requests.
const (
	create    = "create"
	upgrade   = "upgrade"
	rollback  = "rollback"
	retry     = "retry"
	undo      = "undo"
	terminate = "terminate"
	cancel    = "cancel"
	scale     = "scale"
	restart   = "restart"
	heal      = "heal"
)

// act is one request for an instance.
type act struct {
	verb    string
	end     expectedEnd
	keep    bool
	shape   string        // of a create or an upgrade
	after   time.Duration // time until it is cancelled; 0: not cancelled
	timeout time.Duration // of an operation that drags and is not cancelled; 0: a long one
}

// workload is a sequence of requests for one instance. It ends early if the
// instance is deleted.
type workload struct {
	name  string
	dice  *rand.Rand // for decisions during the run
	place place
	share bool   // the namespace with other instances
	link  string // name of the network that it shares with others; empty: none
	acts  []act

	volume string // name of its volume; empty: none
	edge   string // id of the region that its cluster becomes; empty: it has none
}

// newWorkload generates the requests of an instance. The same seed and number give
// the same requests.
func newWorkload(seed uint64, number int, run string) workload {
	dice := rand.New(rand.NewPCG(seed, uint64(number)+2))
	l := workload{name: fmt.Sprintf("c%04d", number), dice: rand.New(rand.NewPCG(seed, uint64(number)+1<<32))}
	l.place = place{Region: regions()[dice.IntN(2)], Namespace: run + "-" + l.name}
	if dice.IntN(6) == 0 {
		l.share = true
		l.place.Namespace = fmt.Sprintf("%s-shared-%s", run, l.place.Region)
	}
	if dice.IntN(3) > 0 {
		l.link = fmt.Sprintf("%s-%s-%d", run, l.place.Region, dice.IntN(2))
	}
	if dice.IntN(3) == 0 {
		l.volume = run + "-" + l.name
	}
	l.acts = acts(dice)
	if dice.IntN(6) == 0 {
		l.edge = run + "-" + l.name
		for i := range l.acts {
			if l.acts[i].shape != "" {
				l.acts[i].shape = "edge"
			}
		}
	}
	return l
}

// acts generates the requests of a workload.
func acts(dice *rand.Rand) []act {
	first := act{verb: create, end: succeeds, shape: shapes()[dice.IntN(3)].name}
	switch n := dice.IntN(20); {
	case n < 2:
		first.end = fails
		return []act{first}
	case n < 4:
		first.end, first.keep = fails, true
		last := act{verb: []string{undo, terminate}[dice.IntN(2)], end: succeeds}
		if dice.IntN(2) == 0 {
			return []act{first, {verb: retry, end: fails, keep: true}, last}
		}
		return []act{first, last}
	case n < 7:
		first.end, first.keep, first.after = drags, dice.IntN(2) == 0, time.Duration(200+dice.IntN(3000))*time.Millisecond
		if n == 6 {
			first.keep, first.after, first.timeout = true, 0, 4*time.Second
		}
		return []act{first, {verb: terminate, end: succeeds}}
	}
	all := []act{first}
	for range dice.IntN(5) {
		all = append(all, change(dice)...)
	}
	if dice.IntN(5) > 0 {
		all = append(all, act{verb: terminate, end: succeeds})
	}
	return all
}

// change generates a change of a ready instance, after which it is ready again.
func change(dice *rand.Rand) []act {
	a := act{verb: upgrade, end: succeeds, shape: shapes()[dice.IntN(3)].name}
	switch n := dice.IntN(20); {
	case n < 3:
		return []act{{verb: rollback, end: succeeds}}
	case n < 5:
		a.end = fails
	case n < 7:
		a.end, a.keep = fails, true
		return []act{a, {verb: undo, end: succeeds}}
	case n < 8:
		a.end, a.keep = fails, true
		return []act{a, {verb: upgrade, end: succeeds, shape: a.shape}}
	case n < 10:
		a.end, a.after = drags, time.Duration(200+dice.IntN(3000))*time.Millisecond
	case n < 13:
		return []act{{verb: []string{scale, restart, heal}[n-10], end: succeeds}}
	}
	return []act{a}
}

// load runs several workloads at the same time until it is stopped.
type load struct {
	client *client
	ledger *ledger
	counts *counts
	seed   uint64
	run    string // name of this run, for unique namespaces
	atOnce int
}

// generate runs workloads until enough is closed or limit operations have been
// accepted. Then it starts no more acts, waits for the running ones, and
// returns. It fails if the context ends.
func (l *load) generate(ctx context.Context, enough <-chan struct{}, limit int) error {
	stop := func() bool {
		select {
		case <-enough:
			return true
		default:
			return limit > 0 && l.ledger.accepted() >= limit
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for worker := range l.atOnce {
		group.Go(func() error {
			for number := worker; !stop(); number += l.atOnce {
				if err := l.runWorkload(ctx, newWorkload(l.seed, number, l.run), stop); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// runWorkload runs one workload.
func (l *load) runWorkload(ctx context.Context, who workload, stop func() bool) error {
	if err := l.createVolume(ctx, who); err != nil {
		return err
	}
	now := &workloadState{workload: who}
	for i, a := range who.acts {
		if stop() || now.gone {
			break
		}
		if err := l.perform(ctx, now, i, a); err != nil {
			return fmt.Errorf("%s of instance %s: %w", a.verb, who.name, err)
		}
	}
	if now.gone {
		return l.releaseVolume(ctx, who)
	}
	return nil
}

// workloadState is the present state of a workload.
type workloadState struct {
	workload

	id        string // of the instance
	operation string // the last one
	gone      bool
}

// perform runs one act and waits for its end.
func (l *load) perform(ctx context.Context, s *workloadState, number int, a act) error {
	r := request{
		Key: fmt.Sprintf("%s-%s-%d", l.run, s.name, number), Workload: s.name, Verb: a.verb, End: a.end, Keep: a.keep,
		Shared: s.share, Place: s.place,
	}
	q := s.ask(&r, number, a)
	answer, err := l.send(ctx, q, &r)
	if err != nil {
		return err
	}
	if answer.Problem.Reason == reasonConfirm {
		q.body.(map[string]any)["confirm"] = answer.Problem.Confirm
		q.key += "-confirmed"
		r.Key, r.Confirm = q.key, true
		if _, err := l.send(ctx, q, &r); err != nil {
			return err
		}
	}
	l.ledger.write(r)
	if r.Operation == "" {
		l.counts.add("requests refused", 1)
		s.gone = s.id == "" // without an instance the workload ends
		return nil
	}
	s.id, s.operation = r.Instance, r.Operation
	if a.after > 0 {
		if err := l.stop(ctx, s, number, a.after); err != nil {
			return err
		}
	}
	return l.follow(ctx, s)
}

// ask returns the request for an act.
func (s *workloadState) ask(r *request, number int, a act) call {
	q := call{method: http.MethodPost, key: r.Key, prefer: "respond-async"}
	if s.dice.IntN(4) == 0 && a.verb != terminate { // which may respond without an operation
		q.prefer = "wait=" + strconv.Itoa(1+s.dice.IntN(3))
	}
	body := map[string]any{"timeout": cmp.Or(a.timeout, 5*time.Minute).String(), "on_failure": "undo"}
	if a.keep {
		body["on_failure"] = "keep"
	}
	path := "/v1/vnf_instances/" + s.id
	switch a.verb {
	case create, upgrade:
		r.Asked = content{Package: a.shape, Generation: number + 1, Replicas: 1 + s.dice.IntN(3), Image: goodImage}
		switch a.end {
		case fails:
			r.Asked.Image = badImage
		case drags:
			r.Asked.Image = neverReady
		case succeeds:
		}
		body["csar_id"], body["parameters"] = r.Asked.Package, r.Asked.parameters()
		if q.path, q.body = path, body; a.verb == upgrade {
			q.method = http.MethodPatch
			break
		}
		q.path = "/v1/vnf_instances"
		body["cloud_region_id"], body["namespace"], body["vnf_instance_name"] = s.place.Region, s.place.Namespace, s.name
		addResources(s.workload, body)
	case scale:
		r.Asked.Replicas = 1 + s.dice.IntN(4)
		body["workloads"] = []any{map[string]any{"workload": appOf(s.name), "replicas": r.Asked.Replicas}}
		q.path, q.body = path+"/scale", body
	case restart:
		q.path, q.body = path+"/restart", body
	case heal:
		delete(body, "on_failure")
		q.path, q.body = path+"/heal", body
	case rollback:
		q.path, q.body = path+"/rollback", body
	case retry:
		q.path, q.body, r.Target = "/v1/operations/"+s.operation+"/retry", body, s.operation
	case undo:
		delete(body, "on_failure")
		q.path, q.body, r.Target = "/v1/operations/"+s.operation+"/undo", body, s.operation
	case terminate:
		q.method, q.path = http.MethodDelete, path+"?timeout=5m"
	}
	return q
}

// appOf names the Deployment of an instance.
func appOf(instance string) string { return "Deployment/" + instance + "-app" }

// send sends a request until it gets a final response. To test idempotency, it
// sends some requests to two servers at the same time, and repeats some after
// their response.
func (l *load) send(ctx context.Context, q call, r *request) (answer, error) {
	began := time.Now()
	l.counts.add("requests", 1)
	var duplicate answer
	var group errgroup.Group
	if rand.IntN(6) == 0 {
		l.counts.add("requests sent twice at once", 1)
		group.Go(func() (err error) { duplicate, err = l.client.insist(ctx, q); return err })
	}
	first, err := l.client.insist(ctx, q)
	if err := group.Wait(); err != nil {
		return first, err
	}
	if err != nil {
		return first, err
	}
	r.Status, r.Problem = first.status, first.Problem
	r.Operation, r.Instance = first.accepted()
	if operation, _ := duplicate.accepted(); operation != "" || r.Operation != "" && duplicate.status != 0 {
		r.recordRepeat(duplicate)
	}
	if rand.IntN(6) == 0 && r.Operation != "" {
		l.counts.add("requests repeated after their answer", 1)
		again, err := l.client.insist(ctx, q)
		if err != nil {
			return first, err
		}
		r.recordRepeat(again)
	}
	r.Waited = time.Since(began)
	return first, nil
}

// recordRepeat records the response to a repetition of the request.
func (r *request) recordRepeat(a answer) {
	operation, _ := a.accepted()
	if operation == "" {
		operation = fmt.Sprintf("none, but status %d: %s", a.status, a.body)
	}
	if r.Operation == "" {
		operation = fmt.Sprintf("%s, after status %d: %s", operation, r.Status, r.Problem.Detail)
	}
	r.Also = append(r.Also, operation)
}

// stop cancels the running operation after a while.
func (l *load) stop(ctx context.Context, s *workloadState, number int, after time.Duration) error {
	if err := pause(ctx, after); err != nil {
		return err
	}
	q := call{method: http.MethodPost, path: "/v1/operations/" + s.operation + "/cancel", key: fmt.Sprintf("%s-%s-%d-cancel", l.run, s.name, number)}
	a, err := l.client.insist(ctx, q)
	if err != nil {
		return err
	}
	l.counts.add("requests", 1)
	if a.status == http.StatusAccepted {
		l.ledger.cancel(s.operation)
	}
	l.ledger.write(request{
		Key: q.key, Workload: s.name, Verb: cancel, Target: s.operation, Status: a.status, Problem: a.Problem, Operation: s.operation,
		Instance: s.id, Place: s.place,
	})
	return nil
}

// follow waits until the last operation ends, and records whether the instance
// is deleted.
func (l *load) follow(ctx context.Context, s *workloadState) error {
	for n := 0; ; n++ {
		var op operation
		found, err := l.client.get(ctx, "/v1/operations/"+s.operation, &op)
		if err != nil {
			return err
		}
		if !found {
			l.counts.add("operations that disappeared", 1)
			s.gone = true
			return nil
		}
		if op.final() {
			l.counts.longest("longest operation", op.Finished.Sub(op.Accepted))
			s.gone, err = l.client.gone(ctx, s.id, s.name)
			return err
		}
		// A hundred clients that ask each second would be a third of the servers' work.
		if err := pause(ctx, 150*time.Millisecond<<min(n, 5)); err != nil {
			return err
		}
	}
}
