package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// condition is the state of an instance.
type condition string

const (
	gone   condition = "gone"
	ready  condition = "ready"
	broken condition = "failed"
)

// outcome is the expected state of an instance after its operations.
type outcome struct {
	condition

	inForce  int             // active revision; 0: none
	contents map[int]content // of each revision that was active
	scaled   *scaling        // the last scaling that is in force; nil: none
}

// scaling is a number of replicas that a scaling has set.
type scaling struct {
	replicas int
	planned  int // the number in the package, which was active then
}

// checkInstance computes the expected state of an instance from its operations,
// and compares it with the actual state.
func (q *checker) checkInstance(id string) {
	o := outcome{condition: gone, contents: map[int]content{}}
	for _, c := range q.history[id] {
		if !c.final() || c.request.Operation == "" {
			return // reported as a finding elsewhere
		}
		q.expected(c)
		o = q.next(id, o, c)
	}
	q.compare(id, o)
}

// expected checks that an operation ended as its request intended.
func (q *checker) expected(c operationRecord) {
	r := c.request
	wanted := map[expectedEnd]string{succeeds: "succeeded", fails: "failed", drags: "failed"}[r.End]
	if r.Cancelled && c.State == "cancelled" {
		return
	}
	if r.Cancelled && c.State != "failed" || wanted != "" && c.State != wanted {
		why := ""
		if c.Failure != nil {
			why = fmt.Sprintf(", in step %q: %s: %s", c.Failure.Step, c.Failure.Kind, c.Failure.Message)
		}
		q.find("word", c.ID, "operation %s (%s of %s, cancelled: %t) was to end as one that %s, and is %s%s", c.ID, r.Verb, c.Instance, r.Cancelled, r.End, c.State, why)
	}
}

// next returns the expected state after one more operation.
func (q *checker) next(id string, o outcome, c operationRecord) outcome {
	if c.State != "succeeded" {
		switch {
		case c.Verb == heal:
			o.condition = ready // a heal changes no state
		case c.Verb == "terminate" || c.OnFailure == "keep":
			o.condition = broken
		case o.inForce == 0:
			o.condition = gone
		default:
			o.condition = ready
		}
		return o
	}
	if c.Verb == "terminate" {
		o.condition = gone
		return o
	}
	if slices.Contains([]string{scale, restart, heal}, c.request.Verb) {
		if c.request.Verb == scale {
			o.scaled = &scaling{replicas: c.request.Asked.Replicas, planned: o.contents[o.inForce].Replicas}
		}
		return o
	}
	o.condition, o.inForce = ready, c.Revision
	o.contents = maps.Clone(o.contents)
	switch c.request.Verb {
	case create, upgrade:
		o.contents[c.Revision] = c.request.Asked
		o.replan(c.Revision)
	case retry:
		o.contents[c.Revision] = q.asked[c.request.Target].Asked
		o.replan(c.Revision)
	default:
		restored, known := o.contents[q.restores(id, c.Revision)]
		if _, there := q.byID[id]; there && !known {
			q.find("record", c.ID, "operation %s does not record the revision that it returned to", c.ID)
		}
		o.contents[c.Revision] = restored
		if o.scaled != nil { // a rollback keeps it
			o.scaled = &scaling{replicas: o.scaled.replicas, planned: restored.Replicas}
		}
	}
	return o
}

// replan forgets a scaling if the package has another number in a new revision.
func (o *outcome) replan(revision int) {
	if o.scaled != nil && o.scaled.planned != o.contents[revision].Replicas {
		o.scaled = nil
	}
}

// restores returns the revision that a revision restores, according to the
// service.
func (q *checker) restores(id string, number int) int {
	for _, rev := range q.snapshot.revisions[id] {
		if rev.Number == number {
			return rev.Restores
		}
	}
	return 0
}

// compare compares an instance with its expected state.
func (q *checker) compare(id string, o outcome) {
	in, there := q.byID[id]
	operation := q.last(id)
	if !there || o.condition == gone {
		if there || o.condition != gone {
			q.find("word", operation, "instance %s must be %s, and is there: %t (%s %s)", id, o.condition, there, in.State, in.Message)
		}
		return // its objects, if any, are reported as orphans
	}
	if in.State != string(o.condition) || in.Revision != o.inForce {
		q.find("word", operation, "instance %s must be %s at revision %d, and is %s at revision %d: %s", id, o.condition, o.inForce, in.State, in.Revision, in.Message)
		return
	}
	if o.condition == ready {
		q.faithful(in, o)
	}
}

// faithful checks that a ready instance has the requested content, in its
// record and in the cluster.
func (q *checker) faithful(in instance, expected outcome) {
	want := expected.contents[expected.inForce]
	operation := q.last(in.ID)
	recorded := content{Package: in.Package}
	generation, _ := in.Parameters["generation"].(float64)
	replicas, _ := in.Parameters["replicas"].(float64)
	recorded.Generation, recorded.Replicas = int(generation), int(replicas)
	recorded.Image, _ = in.Parameters["image"].(string)
	if recorded != want {
		q.find("word", operation, "instance %s was asked to be %+v, and its record says %+v", in.ID, want, recorded)
	}
	wanted := want.objects(in.Name)
	for _, v := range in.Volumes {
		wanted = append(wanted, "PersistentVolumeClaim "+v.Claim)
	}
	slices.Sort(wanted)
	if got := in.inventory(); !slices.Equal(got, wanted) {
		q.find("word", operation, "instance %s must have the objects %q, and its inventory is %q", in.ID, wanted, got)
	}
	var live []string
	for _, o := range q.snapshot.objects {
		if o.owner() != in.ID || !o.own() {
			continue
		}
		live = append(live, o.String())
		if wrong := cmp.Or(o.differs(want, expected.scaled), o.detached(in)); wrong != "" {
			q.find("word", operation, "%s of instance %s is not as asked: %s", o.at(), in.ID, wrong)
		}
	}
	if slices.Sort(live); !slices.Equal(live, wanted) {
		q.find("word", operation, "instance %s must have the objects %q, and the cluster has %q", in.ID, wanted, live)
	}
}

// differs returns how a live object differs from the content, or "".
func (o object) differs(want content, scaled *scaling) string {
	switch o.Kind {
	case "ConfigMap":
		for key, value := range map[string]string{"generation": strconv.Itoa(want.Generation), "replicas": strconv.Itoa(want.Replicas), "package": want.Package} {
			if o.Data[key] != value {
				return fmt.Sprintf("%s is %q, want %q", key, o.Data[key], value)
			}
		}
	case "Deployment":
		if scaled != nil {
			want.Replicas = scaled.replicas
		}
		if o.Spec.Replicas != want.Replicas || len(o.Spec.Template.Spec.Containers) != 1 || o.Spec.Template.Spec.Containers[0].Image != want.Image {
			return fmt.Sprintf("it has %d replicas of %+v, want %d of %s", o.Spec.Replicas, o.Spec.Template.Spec.Containers, want.Replicas, want.Image)
		}
	}
	return ""
}

// detached returns which network of its instance a live Deployment is not attached to, or "".
func (o object) detached(in instance) string {
	for _, a := range in.Networks {
		if o.Kind == "Deployment" && !strings.Contains(o.Spec.Template.Metadata.Annotations["k8s.v1.cni.cncf.io/networks"], a.Network) {
			return "it is not attached to " + a.Network
		}
	}
	return ""
}
