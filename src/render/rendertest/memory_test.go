package rendertest

import "testing"

func TestAllocated(t *testing.T) {
	var kept []byte
	if got := Allocated(func() { kept = make([]byte, 1<<20) }); got < 1<<20 || got > 2<<20 || len(kept) == 0 {
		t.Errorf("a MiB takes %d bytes", got)
	}
	if got := Allocated(func() {
		for range 10 {
			kept = make([]byte, 1<<20)
		}
	}); got < 10<<20 {
		t.Errorf("ten, of which nine are dropped, take %d bytes", got)
	}
	if got := Allocated(func() {}); got > 1<<20 {
		t.Errorf("nothing takes %d bytes", got)
	}
}
