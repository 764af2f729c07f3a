package rendertest

import (
	"runtime"
	"testing"
)

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

func TestPeak(t *testing.T) {
	var kept, dropped []byte
	got := Peak(func() {
		kept = make([]byte, 64<<20)
		for range 50 {
			dropped = make([]byte, 1<<20)
			runtime.GC()
		}
	})
	if got < 64<<20 || got > 80<<20 || len(kept)+len(dropped) == 0 {
		t.Errorf("64 MiB that are kept, and 50 that are not, take %d bytes at once", got)
	}
	if got := Peak(func() {}); got > 1<<20 {
		t.Errorf("nothing takes %d bytes", got)
	}
}
