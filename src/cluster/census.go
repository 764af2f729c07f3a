package cluster

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// Mark is the status of one object that has nf.OwnerLabel, without its content.
type Mark struct {
	Owner  string
	Key    string    // nf.Ref.Key of the object
	Status nf.Status // nf.Absent: it was deleted or its owner label changed
	Stamp  uint64    // changes whenever a client may have changed more than the status
	Synced bool      // no object: the initial list is complete
}

// Census yields the status of each object of a kind that has nf.OwnerLabel, in
// any namespace and version, then a Mark with Synced set, and then each status
// that may have changed, until the loop stops or the context ends. It uses one
// watch, and about leanWeight bytes per object. For kinds whose status does not
// depend on their content, such as Secrets, it reads only metadata. A status that
// counts only after a time counts at once.
//
// An error ends the sequence: the error of a failed list, at first or after the
// watch broke; nf.Unsupported if the kind is not served; nf.Unreachable if the
// server of its API is down; nf.Unreachable, reason "replaced", if the region
// is deregistered or gets another access.
func (c *Cluster) Census(ctx context.Context, kind nf.Ref) iter.Seq2[Mark, error] {
	return func(yield func(Mark, error) bool) {
		targets, err := c.client.apis.resolveAll(ctx, []nf.Ref{kind})
		if err == nil && (!targets[0].served || !targets[0].kind.can("list", "watch")) {
			err = unserved(kind)
		}
		if err != nil {
			yield(Mark{}, err)
			return
		}
		watching, cancel := context.WithCancel(ctx)
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer cancel()
		waiting.Go(func() { // otherwise the watch would outlive its cluster
			select {
			case <-watching.Done():
			case <-c.transport.closed:
				cancel()
			}
		})
		k := targets[0].kind
		t := &ownerSink{scope: k.in(""), bare: bare(kind), owners: map[string]string{}, stop: cancel, yield: yield, rules: c.client.apis.rules, categories: k.categories}
		s := &stream{client: c.client, view: t, scope: t.scope, query: query{labels: nf.OwnerLabel}, known: map[string]int64{}, lean: true, keys: []string{initialListDone}}
		if t.bare {
			s.query.accept = acceptMetaList
		}
		s.run(watching)
		if c.transport.isClosed() {
			c.transport.CloseIdleConnections()
			t.end(c.client.region.fail(ctx, "watch", kind.Kind+" objects", errReplaced))
		}
	}
}

// bare reports whether the status of a kind's objects depends only on their
// metadata.
func bare(kind nf.Ref) bool {
	switch kind.Group {
	case "":
		return kind.Kind == "Secret" || kind.Kind == "ConfigMap" || kind.Kind == "ServiceAccount"
	case "rbac.authorization.k8s.io":
		return true
	}
	return false
}

// ownerSink is the sink of a census. It keeps only the owner of each object.
type ownerSink struct {
	scope  scope
	bare   bool              // only metadata is read
	owners map[string]string // by Ref.Key

	rules      *readiness.Rules
	categories []string // of the kind
	stop       func()
	yield      func(Mark, error) bool
	over       bool // the loop has stopped, or an error was yielded
}

var _ sink = (*ownerSink)(nil)

func (t *ownerSink) report(m Mark, err error) {
	if t.over {
		return
	}
	if t.over = !t.yield(m, err) || err != nil; t.over {
		t.stop()
	}
}

// put implements sink. If an object's owner has changed, it is reported as
// absent for the previous owner.
func (t *ownerSink) put(u *unstructured.Unstructured) (key string) {
	key = t.scope.ref(&metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName()}).Key()
	owner, status := u.GetLabels()[nf.OwnerLabel], nf.Current
	switch {
	case !t.bare:
		status = judge(t.rules, u, t.categories).Status
	case u.GetDeletionTimestamp() != nil:
		status = nf.StatusDeleting
	}
	if former := t.owners[key]; former != "" && former != owner {
		t.report(Mark{Owner: former, Key: key, Status: nf.Absent}, nil)
	}
	t.owners[key] = owner
	t.report(Mark{Owner: owner, Key: key, Status: status, Stamp: stampOf(u)}, nil)
	return key
}

// stampOf returns a number for the state of an object without its status. If a client
// changes a field twice within a second, the generation tells, or the resource version
// of an object that has none.
func stampOf(u *unstructured.Unstructured) uint64 {
	h := fnv.New64a()
	version := u.GetResourceVersion()
	if u.GetGeneration() > 0 {
		version = strconv.FormatInt(u.GetGeneration(), 10)
	}
	_, _ = fmt.Fprint(h, u.GetUID(), " ", version, u.GetLabels(), u.GetAnnotations()) // maps are printed in order
	metadata, _ := u.Object["metadata"].(map[string]any)
	managers, _ := metadata["managedFields"].([]any) // u.GetManagedFields would decode the fields
	for _, m := range managers {
		if f, _ := m.(map[string]any); f["subresource"] != "status" {
			_, _ = fmt.Fprint(h, f["manager"], f["operation"], f["subresource"], f["time"])
		}
	}
	return h.Sum64()
}

// drop implements sink.
func (t *ownerSink) drop(key string) {
	if owner, ok := t.owners[key]; ok {
		delete(t.owners, key)
		t.report(Mark{Owner: owner, Key: key, Status: nf.Absent}, nil)
	}
}

// markChanged implements sink: the initial list is complete.
func (t *ownerSink) markChanged([]string) { t.report(Mark{Synced: true}, nil) }

// end implements sink.
func (t *ownerSink) end(err error) { t.report(Mark{}, err) }
