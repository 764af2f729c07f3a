package lifecycle

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

const (
	plansMemory  = 256 << 20 // bytes, by planWeight: of all plans that requests hold at a time, and the most that is reserved for one
	plansWaiting = 8         // requests that hold a plan and wait for memory
)

// planMemory limits the memory of the plans that all requests hold while they compare them
// with regions.
type planMemory struct {
	budget  *budget.Budget
	waiting *semaphore.Weighted
}

// heldPlan is the memory that one request has reserved for its plan.
type heldPlan struct {
	memory *planMemory
	share  *budget.Share // nil: none
}

// hold reserves memory for the plan that the request has rendered or read, instead of an
// earlier one. It returns nf.TooManyRequests if there is none for 10 seconds, or at once if
// too many requests wait: their plans exist already.
func (h *heldPlan) hold(ctx context.Context, p render.Plan) error {
	h.release()
	weight := min(planWeight(p), plansMemory)
	h.share = h.memory.budget.Open(weight)
	if h.share.TryReserve(weight) {
		return nil
	}
	if !h.memory.waiting.TryAcquire(1) {
		return budget.Taken(time.Second)
	}
	defer h.memory.waiting.Release(1)
	return h.share.Reserve(ctx, weight)
}

func (h *heldPlan) release() {
	if h.share != nil {
		h.share.Close()
	}
}

// planWeight returns about how many bytes a request needs for a plan: for its objects, for
// their encoded form, and for the requests that contain them.
func planWeight(p render.Plan) int64 {
	var total int64
	for _, obj := range p.Objects() {
		total += valueWeight(obj.Object)
	}
	for _, h := range p.Hooks {
		total += valueWeight(h.Object.Object)
	}
	return total
}

func valueWeight(v any) int64 {
	const (
		each   = 64 // of a value, beside its text
		copies = 4  // of a text, at most at a time
	)
	total := int64(each)
	switch v := v.(type) {
	case string:
		total += copies * int64(len(v))
	case []any:
		for _, item := range v {
			total += valueWeight(item)
		}
	case map[string]any:
		for key, item := range v {
			total += copies*int64(len(key)) + valueWeight(item)
		}
	}
	return total
}

// begin returns a requester for one request, which shares the memory for plans with
// others. The caller must end it.
func (q *requester) begin() *requester {
	own, preparer := *q, *q.preparer
	preparer.held = &heldPlan{memory: preparer.memory}
	own.preparer = &preparer
	return &own
}

// end releases the memory of the request's plan.
func (q *requester) end() { q.preparer.held.release() }
