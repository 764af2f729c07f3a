package operation

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestNobodySpeaksAfterTheLastWord plays a cancellation whose answer is older
// than the operation's end and comes after it.
func TestNobodySpeaksAfterTheLastWord(t *testing.T) {
	f := newFeed()
	leave := f.subscribe("op")
	defer leave()
	f.publish(nf.Operation{ID: "op", State: nf.Succeeded})
	f.publish(nf.Operation{ID: "op", State: nf.Running, Cancel: true})
	if op, published, _ := f.latest("op"); !published || op.State != nf.Succeeded {
		t.Errorf("followers are told %s at last", op.State)
	}
}
