package lifecycle

import (
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// noWait is the timeout of hooks that are not waited for.
const noWait = -1

// orderHooks orders hooks and sets the timeouts that the spec's annotations
// give. It returns nf.Invalid if a timeout is not a duration.
func (p *prepared) orderHooks(found []render.Hook) ([]render.Planned, error) {
	times := map[nf.HookEvent]time.Duration{}
	var wrong nf.Violations
	for _, event := range hookEvents() {
		text, given := p.target.spec.Annotations[nf.HookTimeoutAnnotation+string(event)]
		if !given {
			continue
		}
		timeout, err := time.ParseDuration(text)
		if err != nil {
			wrong = append(wrong, nf.Violation{Field: nf.HookTimeoutAnnotation + string(event), Message: fmt.Sprintf("%q is not a duration", text)})
		}
		if times[event] = timeout; timeout <= 0 {
			times[event] = noWait
		}
	}
	if wrong != nil {
		return nil, nf.E(nf.Invalid, "order", "hooks", wrong)
	}
	out := render.OrderHooks(found)
	for i, h := range out {
		for _, event := range h.Events {
			if timeout, given := times[event]; given {
				out[i].Timeout = timeout
			}
		}
	}
	return out, nil
}

func hookEvents() []nf.HookEvent {
	return []nf.HookEvent{nf.PreInstall, nf.PostInstall, nf.PreUpgrade, nf.PostUpgrade,
		nf.PreRollback, nf.PostRollback, nf.PreDelete, nf.PostDelete, nf.TestRun}
}
