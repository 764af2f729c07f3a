package lifecycle_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func (c *fakeCluster) Unready(ctx context.Context, _ nf.Subject, refs []nf.Ref, most int) (pods []nf.Health, more int, err error) {
	var asked []string
	for _, ref := range refs {
		asked = append(asked, ref.Name)
	}
	leave, err := c.enter(ctx, "unready "+fmt.Sprint(asked))
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	most = min(most, len(c.unready))
	return c.unready[:most], len(c.unready) - most, c.unreadyErr
}

// Pods returns a pod of each ref, and the pods that the test has put below one of them.
func (c *fakeCluster) Pods(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Pod, error) {
	health, err := c.Health(ctx, owner, refs)
	var out []nf.Pod
	for _, h := range health {
		out = append(out, nf.Pod{Health: h, Workload: h.Ref})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if slices.ContainsFunc(refs, func(r nf.Ref) bool { return r.Key() == p.Workload.Key() }) {
			out = append(out, p)
		}
	}
	return out, err
}
