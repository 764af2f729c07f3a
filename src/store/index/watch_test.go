package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
)

// replicas returns two processes on one database.
func replicas(t *testing.T, db *shared) [2]indexed {
	t.Helper()
	return [2]indexed{running(t, index.Config{KV: db, Changes: db}), running(t, index.Config{KV: db, Changes: db})}
}

// TestFollowsOthers writes through one replica, and lists through both.
func TestFollowsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newShared()
		both := replicas(t, db)
		for n := range 12 {
			id := fmt.Sprintf("i%02d", n)
			must(t, both[n%2].instances.Insert(t.Context(), id, instance(id, n)))
		}
		east := questions()["region"]
		if got := both[0].find(t, east); len(got) != 6 {
			t.Errorf("the replica that has written the records finds %v", got)
		}
		if got := both[1].find(t, east); len(got) != 0 {
			t.Errorf("before the changes are reported, the other finds %v", got)
		}
		db.deliver(12)
		synctest.Wait()
		both[1].agrees(t)
		must(t, both[0].instances.Delete(t.Context(), "i02"))
		must(t, both[0].instances.Put(t.Context(), "i01", instance("i01", 4)))
		both[0].agrees(t)
		db.deliver(2)
		synctest.Wait()
		both[0].agrees(t)
		both[1].agrees(t)
		if got := both[1].Status()["instances"].Records; got != 11 {
			t.Errorf("after a deletion, the index has %d records", got)
		}
	})
}

// TestLateReports has reports of changes that the replica has made itself and replaced
// since, and one of a deletion that is reported after the record exists again.
func TestLateReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newShared()
		x := running(t, index.Config{KV: db, Changes: db})
		must(t, x.instances.Insert(t.Context(), "i01", instance("i01", 1)))
		must(t, x.instances.Put(t.Context(), "i01", instance("i01", 2)))
		must(t, x.instances.Delete(t.Context(), "i01"))
		must(t, x.instances.Insert(t.Context(), "i01", instance("i01", 3)))
		must(t, x.instances.Insert(t.Context(), "i02", instance("i02", 3)))
		must(t, x.instances.Delete(t.Context(), "i02"))
		for range 6 {
			x.agrees(t)
			db.deliver(1)
			synctest.Wait()
		}
		x.agrees(t)
		if got := x.Status()["instances"].Records; got != 1 {
			t.Errorf("the index has %d records", got)
		}
	})
}

// TestLateWrite has a write that is carried out after it has failed, and after the record
// was read.
func TestLateWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newShared()
		away := true
		x := running(t, index.Config{KV: unreachable{db, &away}, Changes: db})
		if err := x.instances.Put(t.Context(), "i01", instance("i01", 0)); nf.KindOf(err) != nf.Unreachable {
			t.Fatalf("the write returns %v", err)
		}
		x.agrees(t)
		late := store.NewTable[nf.Instance](db, prefix, "VNF instance")
		must(t, late.Put(t.Context(), "i01", instance("i01", 0)))
		db.deliver(1)
		synctest.Wait()
		x.agrees(t)
	})
}

// unreachable is a database that rejects writes.
type unreachable struct {
	store.KV

	away *bool
}

func (u unreachable) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if *u.away {
		return 0, nf.E(nf.Unreachable, "write", "the store", nil)
	}
	return u.KV.Put(ctx, key, value, expected)
}

// TestVersion changes a table in every way.
func TestVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newShared()
		away := false
		x := running(t, index.Config{KV: unreachable{db, &away}, Changes: db})
		other := store.NewTable[nf.Instance](db, prefix, "VNF instance")
		before, known := x.Version(prefix)
		if !known {
			t.Fatal("the version of a table that is filled is not known")
		}
		for _, tc := range []struct {
			reason  string
			act     func() error
			changes bool
			known   bool
		}{
			{"a read changes nothing", func() error { _, err := x.instances.Get(t.Context(), "i01"); return nf.IgnoreNotFound(err) }, false, true},
			{"a new record", func() error { return x.instances.Insert(t.Context(), "i01", instance("i01", 1)) }, true, true},
			{"a changed one", func() error { return x.instances.Put(t.Context(), "i01", instance("i01", 1)) }, true, true},
			{"a change of another process", func() error { return other.Put(t.Context(), "i02", instance("i02", 1)) }, true, true},
			{"a deletion", func() error { return x.instances.Delete(t.Context(), "i01") }, true, true},
			{"a deletion by another process", func() error { return other.Delete(t.Context(), "i02") }, true, true},
			{"a write with an unknown result", func() error {
				away = true
				if err := x.instances.Put(t.Context(), "i01", instance("i01", 1)); nf.KindOf(err) != nf.Unreachable {
					return err
				}
				return nil
			}, true, false},
			{"a read that tells the result", func() error { _, err := x.instances.Get(t.Context(), "i01"); return nf.IgnoreNotFound(err) }, true, true},
		} {
			must(t, tc.act())
			db.deliver(1)
			synctest.Wait()
			after, known := x.Version(prefix)
			if (after != before) != tc.changes || known != tc.known {
				t.Errorf("%s: version %d, and then %d, known: %t", tc.reason, before, after, known)
			}
			before = after
		}
		if _, known := x.Version("packages/"); known {
			t.Error("the version of a table that is not indexed is known")
		}
		db.interrupt(nf.E(nf.Unreachable, "watch", "keys", errors.New("compacted")))
		synctest.Wait()
		if _, known := x.Version(prefix); known {
			t.Error("changes are missing, and the version is known")
		}
	})
}

// TestLostChanges interrupts the watch, so that changes are lost: a new record, a changed
// one and a deleted one. The index is filled again.
func TestLostChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newShared()
		both := replicas(t, db)
		for n := range 6 {
			id := fmt.Sprintf("i%02d", n)
			must(t, both[0].instances.Insert(t.Context(), id, instance(id, n)))
		}
		db.deliver(6)
		synctest.Wait()
		must(t, both[0].instances.Insert(t.Context(), "i06", instance("i06", 6)))
		must(t, both[0].instances.Put(t.Context(), "i01", instance("i01", 2)))
		must(t, both[0].instances.Delete(t.Context(), "i02"))
		db.interrupt(nf.E(nf.Unreachable, "watch", "keys", errors.New("compacted")))
		synctest.Wait()
		for _, x := range both {
			if _, ok := x.instances.Find(t.Context(), questions()["region"]); ok {
				t.Error("an index was used that lacks changes")
			}
		}
		for _, x := range both {
			x.untilFilled(t)
			x.agrees(t)
			if got := x.Status()["instances"].Records; got != 6 {
				t.Errorf("the index has %d records", got)
			}
		}
	})
}

// TestLostNowAndThen interrupts the watch once an hour. The index is filled again each time as
// soon as after the first.
func TestLostNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newShared()
		x := running(t, index.Config{KV: db, Changes: db})
		for n := range 12 {
			<-time.After(time.Hour)
			db.interrupt(nf.E(nf.Unreachable, "watch", "keys", errors.New("no leader")))
			<-time.After(3 * time.Second)
			synctest.Wait()
			if !x.Status()["instances"].Filled {
				t.Fatalf("the index is not filled 3 s after interruption %d", n+1)
			}
		}
	})
}

// TestUnreadableChange has a change that this process cannot decrypt. The index offers the
// record, so that its reader gets the error.
func TestUnreadableChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newShared()
		x := running(t, index.Config{KV: db, Changes: db})
		if _, err := db.Put(t.Context(), prefix+"i01", []byte("{"), store.Absent); err != nil {
			t.Fatal(err)
		}
		db.deliver(1)
		synctest.Wait()
		found, _ := x.instances.Find(t.Context(), questions()["nothing"])
		for _, err := range found {
			if err == nil {
				t.Error("the record was read")
			}
			return
		}
		t.Error("the record is left out")
	})
}

// FuzzIndex compares what the indexes of two replicas find with scans of the database,
// during random writes whose reports are late.
func FuzzIndex(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { model(t, rand.New(rand.NewPCG(seed, 1))) })
	})
}

func model(t *testing.T, random *rand.Rand) {
	t.Helper()
	db := newShared()
	both := replicas(t, db)
	wrote := map[string]bool{} // by replica and id: its last write was by this replica
	for range 40 {
		at, n := random.IntN(2), random.IntN(100)
		x, id := both[at], fmt.Sprintf("i%02d", random.IntN(8))
		var err error
		switch random.IntN(8) {
		case 0, 1, 2:
			err = x.instances.Put(t.Context(), id, instance(id, n))
		case 3:
			_, err = x.instances.Update(t.Context(), id, func(in *nf.Instance) error {
				newest := in.Newest + 1 // so that there is a change
				*in = instance(id, n)
				in.Newest = newest
				return nil
			})
		case 4:
			err = x.instances.Delete(t.Context(), id)
		case 5:
			put, err2 := x.instances.PutOp(id, instance(id, n))
			must(t, err2)
			_, err = store.Write(t.Context(), x, []store.Op{put})
		case 6:
			db.deliver(random.IntN(4))
			synctest.Wait()
			continue
		default:
			db.interrupt(errors.New("compacted"))
			synctest.Wait()
			both[0].untilFilled(t)
			both[1].untilFilled(t)
			continue
		}
		must(t, nf.IgnoreNotFound(err))
		if err != nil {
			continue
		}
		wrote[fmt.Sprint(at, id)], wrote[fmt.Sprint(1-at, id)] = true, false
		x.seesItsWrites(t, func(id string) bool { return wrote[fmt.Sprint(at, id)] })
	}
	db.deliver(1000)
	synctest.Wait()
	both[0].agrees(t)
	both[1].agrees(t)
}

// seesItsWrites fails if the index leaves out a record that the process has written last,
// or has one that the conditions exclude.
func (x indexed) seesItsWrites(t *testing.T, own func(id string) bool) {
	t.Helper()
	others := func(id string) bool { return !own(id) }
	for name, c := range questions() {
		scan, found := x.scan(t, c), x.find(t, c)
		if diff := cmp.Diff(slices.DeleteFunc(slices.Clone(scan), others), slices.DeleteFunc(slices.Clone(found), others)); diff != "" {
			t.Fatalf("%s, own records (-scan +index):\n%s", name, diff)
		}
		for _, id := range found {
			if !slices.Contains(scan, id) {
				t.Fatalf("%s: the index has %s, the scan %v", name, id, scan)
			}
		}
	}
}
