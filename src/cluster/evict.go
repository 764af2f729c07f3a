package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// budgetPause is the time between two attempts to evict a pod.
const budgetPause = 500 * time.Millisecond

// Evict evicts one of the owner's pods, or deletes it if the task says so. It returns
// nf.Deleted; or nf.Unchanged if the pod is gone, or another one has its name. It does
// not wait until the pod is gone. While a disruption budget does not allow the
// eviction, Evict tries again for the task's patience. Then it returns nf.Failed with
// nf.ReasonBudget, and names the budget; so it does at once if several budgets select
// the pod. It returns nf.Conflict for a pod of another owner, and nf.Failed if a
// permission is missing. Evict is idempotent. A pod that is being deleted is deleted in
// less time if the task gives it a shorter grace period.
func (c *Cluster) Evict(ctx context.Context, owner nf.Subject, pod nf.HealPod, task nf.HealTask) (nf.Change, error) {
	targets, err := c.client.apis.resolveAll(ctx, []nf.Ref{pod.Ref})
	if err != nil {
		return nf.Change{}, err
	}
	e := eviction{client: c.client, target: targets[0], uid: types.UID(pod.UID)}
	gone := nf.Change{Ref: pod.Ref, Action: nf.Unchanged, UID: pod.UID, Message: "it is gone"}
	live, found, err := c.client.meta(ctx, e.target)
	switch {
	case err != nil:
		return nf.Change{}, c.client.region.failObject(ctx, "evict", pod.Ref, err)
	case !found || live.UID != e.uid:
		return gone, nil
	}
	if theirs, yes := otherOwner(owner, pod.Ref, live); yes {
		return nf.Change{}, notOwned("evict", theirs)
	}
	if task.Force {
		err = c.client.deleteExact(ctx, e.target, metav1.Preconditions{UID: &e.uid}, task.Grace)
	} else {
		err = e.run(ctx, live.Labels, task.Patience)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return gone, nil // a conflict is that of the uid
	}
	if err != nil {
		return nf.Change{}, c.client.region.failObject(ctx, "evict", pod.Ref, err)
	}
	return nf.Change{Ref: pod.Ref, Action: nf.Deleted, UID: pod.UID}, nil
}

// eviction is the eviction of one pod.
type eviction struct {
	client *client
	target target
	uid    types.UID
}

// run evicts the pod, and tries again while a disruption budget does not allow it.
func (e eviction) run(ctx context.Context, podLabels map[string]string, patience time.Duration) error {
	body, err := json.Marshal(policy.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: e.target.ref.Namespace, Name: e.target.ref.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.uid}},
	})
	if err != nil {
		return fmt.Errorf("cannot encode an eviction: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var got response
		err := e.client.once(ctx, func() *rest.Request {
			return e.client.request(http.MethodPost, e.target).SubResource("eviction").SetHeader("Content-Type", "application/json").Body(body)
		}, &got, nil)
		switch {
		case apierrors.HasStatusCause(err, policy.DisruptionBudgetCause):
			if e.client.pause(limited, max(budgetPause, retryAfter(err))) == nil {
				continue
			}
			if ctx.Err() != nil {
				return err
			}
			return e.refuse("a disruption budget has not allowed it for " + patience.String() + ": " + budgetSays(err))
		case apierrors.IsInternalError(err):
			if names := e.budgets(ctx, podLabels); len(names) > 1 {
				return e.refuse("the disruption budgets " + strings.Join(names, " and ") + " both select it, which Kubernetes does not support")
			}
		}
		return err
	}
}

func (e eviction) refuse(why string) error {
	return &nf.Error{
		Kind: nf.Failed, Op: "evict", Subject: e.target.ref.String(), Reason: nf.ReasonBudget, Err: fmt.Errorf("%s; with force, it is deleted all the same", why),
	}
}

// budgetSays returns the API server's message about the budget, which names it.
func budgetSays(err error) string {
	cause, _ := apierrors.StatusCause(err, policy.DisruptionBudgetCause)
	return clipped(cause.Message)
}

// budgets returns the names of the disruption budgets that select the pod, as far as
// they can be read.
func (e eviction) budgets(ctx context.Context, podLabels map[string]string) []string {
	ks, err := e.client.apis.kinds(ctx, nil)
	if err != nil {
		return nil
	}
	k, served := ks.any(schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"})
	if !served {
		return nil
	}
	found, err := e.client.whole(ctx, k.in(e.target.ref.Namespace), query{})
	if err != nil {
		return nil
	}
	defer found.release()
	var out []string
	for _, u := range found.items {
		var b policy.PodDisruptionBudget
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &b) != nil {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && selector.Matches(labels.Set(podLabels)) {
			out = append(out, b.Name)
		}
	}
	return out
}
