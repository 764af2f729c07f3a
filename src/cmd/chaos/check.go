package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// finding is a violated invariant.
type finding struct {
	Rule      string // the invariant's name, one word
	Text      string
	Operation string // operation whose records explain the finding; may be empty
}

func (f finding) String() string { return f.Rule + ": " + f.Text }

// checker compares a snapshot with what was requested.
type checker struct {
	snapshot snapshot

	asked    map[string]request           // by id of the accepted operation
	byID     map[string]instance          // the instances
	history  map[string][]operationRecord // operations of each instance, by its id
	findings []finding
}

// operationRecord is an operation of an instance, and the request that started it.
type operationRecord struct {
	operation

	request request
}

// check returns every violated invariant of a snapshot, in a stable order.
func (w snapshot) check() []finding {
	q := &checker{snapshot: w, asked: map[string]request{}, byID: map[string]instance{}, history: map[string][]operationRecord{}}
	for _, in := range w.instances {
		q.byID[in.ID] = in
	}
	q.requestsMadeOneOperationEach()
	q.operationsWereAsked()
	q.operationsEnded()
	q.instancesAreFree()
	q.objectsHaveInstances()
	q.namespacesHaveInstances()
	q.networksHaveUsers()
	q.volumesHaveUsers()
	q.regionsHaveClusters()
	q.inventoryIsEqual()
	for _, id := range sortedKeys(q.history) {
		q.checkInstance(id)
	}
	q.viewsAgree()
	slices.SortStableFunc(q.findings, func(a, b finding) int { return cmp.Compare(a.Rule, b.Rule) })
	return q.findings
}

func (q *checker) find(rule, operation, format string, args ...any) {
	q.findings = append(q.findings, finding{Rule: rule, Text: fmt.Sprintf(format, args...), Operation: operation})
}

// requestsMadeOneOperationEach checks that a repeated request was executed
// once. No two requests may share an operation or, if they create one, an
// instance.
func (q *checker) requestsMadeOneOperationEach() {
	creators := map[string]string{}
	for _, r := range q.snapshot.requests {
		for _, other := range r.Also {
			if other != r.Operation {
				q.find("once", r.Operation, "request %s (%s) was answered with operation %q, and when repeated with %s", r.Key, r.Verb, r.Operation, other)
			}
		}
		if r.Operation == "" || r.Verb == cancel {
			continue
		}
		if other, taken := q.asked[r.Operation]; taken {
			q.find("once", r.Operation, "requests %s and %s were answered with the same operation %s", other.Key, r.Key, r.Operation)
		}
		q.asked[r.Operation] = r
		if r.Verb == create {
			if other := creators[r.Instance]; other != "" {
				q.find("once", r.Operation, "requests %s and %s created the same instance %s", other, r.Key, r.Instance)
			}
			creators[r.Instance] = r.Key
		}
	}
}

// operationsWereAsked checks that every operation was requested and that no
// accepted operation was lost.
func (q *checker) operationsWereAsked() {
	there := map[string]bool{}
	for _, op := range q.snapshot.operations {
		if op.Network != "" || op.Volume != "" {
			continue // instances begin it, or the ledger has the volume
		}
		there[op.ID] = true
		r, known := q.asked[op.ID]
		switch {
		case known && op.unheeded():
			q.find("word", op.ID, "operation %s of request %s was accepted, and then taken for one that never was", op.ID, r.Key)
		case op.unheeded():
			continue
		case !known:
			q.find("once", op.ID, "operation %s (%s of %s) was not requested", op.ID, op.Verb, op.Instance)
		}
		q.history[op.Instance] = append(q.history[op.Instance], operationRecord{op, r})
	}
	for id, r := range q.asked {
		if !there[id] {
			q.find("word", id, "operation %s of request %s was accepted and no longer exists", id, r.Key)
		}
	}
}

// operationsEnded checks that every operation has ended, that no work is left,
// and that every failure has a cause.
func (q *checker) operationsEnded() {
	for _, op := range q.snapshot.operations {
		f := op.Failure
		switch {
		case !op.final():
			q.find("stuck", op.ID, "operation %s (%s of %s) is %s", op.ID, op.Verb, op.Instance, op.State)
		case op.State == "succeeded" && f != nil:
			q.find("record", op.ID, "operation %s succeeded and has a failure: %s", op.ID, f.Message)
		case op.State != "succeeded" && (f == nil || f.Kind == "" || f.Message == "" || f.Step == ""):
			q.find("record", op.ID, "operation %s is %s and does not say why, or in which step: %+v", op.ID, op.State, f)
		case op.State != "succeeded" && f.Kind == "internal" && !op.unheeded():
			q.find("record", op.ID, "operation %s is %s by a defect: %s", op.ID, op.State, f.Message)
		}
	}
	for _, key := range q.snapshot.claims {
		q.find("stuck", strings.TrimPrefix(key, "claims/"), "the list of work still has %s", key)
	}
}

// instancesAreFree checks that no instance has a running operation, and that
// names are unique.
func (q *checker) instancesAreFree() {
	names := map[string]string{}
	for _, in := range q.snapshot.instances {
		if in.Running != "" {
			q.find("stuck", in.Running, "instance %s is locked by operation %s", in.ID, in.Running)
		}
		if !slices.Contains([]string{"ready", "failed"}, in.State) {
			q.find("stuck", in.Operation, "instance %s is %s", in.ID, in.State)
		}
		if other := names[in.Name]; other != "" {
			q.find("once", in.Operation, "instances %s and %s have the same name %s", other, in.ID, in.Name)
		}
		names[in.Name] = in.ID
	}
}

// objectsHaveInstances checks that every object with an instance's label is in
// that instance's inventory.
func (q *checker) objectsHaveInstances() {
	for _, o := range q.snapshot.objects {
		in, ok := q.byID[o.owner()]
		switch {
		case !ok:
			q.find("orphan", q.last(o.owner()), "%s belongs to instance %s, which no longer exists", o.at(), o.owner())
		case o.Metadata.Namespace != in.Namespace:
			q.find("orphan", in.Operation, "%s belongs to instance %s of namespace %s", o.at(), in.ID, in.Namespace)
		case o.own() && !slices.Contains(in.inventory(), o.String()):
			q.find("orphan", in.Operation, "%s belongs to instance %s, and is not in its inventory", o.at(), in.ID)
		}
	}
}

// last returns the last operation of an instance.
func (q *checker) last(instance string) string {
	if operations := q.history[instance]; len(operations) > 0 {
		return operations[len(operations)-1].ID
	}
	return ""
}

// namespacesHaveInstances checks that a created namespace is deleted with its
// last instance, and that only instances that asked for it share a namespace.
func (q *checker) namespacesHaveInstances() {
	users := map[string][]string{}
	for _, in := range q.snapshot.instances {
		users[in.Namespace] = append(users[in.Namespace], in.ID)
	}
	for _, name := range q.snapshot.namespaces {
		if len(users[name]) == 0 {
			q.find("orphan", q.lastIn(name), "namespace %s is left, and no instance is in it", name)
		}
		if len(users[name]) > 1 && !strings.HasPrefix(name, q.snapshot.prefix+"-shared-") {
			q.find("once", q.lastIn(name), "namespace %s has the instances %s", name, users[name])
		}
	}
}

func (q *checker) lastIn(namespace string) (id string) {
	for _, op := range q.snapshot.operations {
		if op.Namespace == namespace {
			id = max(id, op.ID)
		}
	}
	return id
}

// viewsAgree checks that all servers return the same.
func (q *checker) viewsAgree() {
	for i, view := range q.snapshot.views {
		if view != q.snapshot.views[0] {
			q.find("views", "", "server %d lists something else than server 1: %s", i+1, difference(q.snapshot.views[0], view))
		}
	}
}

// difference returns the parts of two texts around their first difference.
func difference(a, b string) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	from := max(0, at-200)
	return strconv.Quote(a[from:min(len(a), at+200)]) + " and " + strconv.Quote(b[from:min(len(b), at+200)])
}
