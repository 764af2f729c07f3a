//go:build !race

package helm

import (
	"reflect"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// The tests of this file try every case, one after another. With the race detector they take
// many times as long, and it sees the same code in other tests.

// TestFunctionsAreCharged calls every function with much: what it allocates is
// bounded by what it is charged, also for one that a later version of a library
// brings.
func TestFunctionsAreCharged(t *testing.T) {
	const limit, slack = 16 << 20, 8 << 20
	m := &meter{ctx: t.Context()}
	known := functions(m, &lookup{meter: m})
	refused := 0
	values := large()
	eachFunction(t, func(name string, of reflect.Type) {
		if slices.Contains(slow, name) {
			return // there are few of them
		}
		if slices.ContainsFunc(slices.Collect(of.Ins()), func(in reflect.Type) bool { return in.Kind() == reflect.Map }) {
			values = large() // which set and its like change
		}
		for round := range 8 {
			m.limit, m.used, m.err = limit, 0, nil
			var in []reflect.Value
			for i, arg := range argumentsOf(of, round, func(in reflect.Type) []any {
				if options, ok := values[in.Kind()]; ok {
					return options
				}
				return hostile(in)
			}) {
				typ := of.In(min(i, of.NumIn()-1))
				if of.IsVariadic() && i >= of.NumIn()-1 {
					typ = typ.Elem()
				}
				v := reflect.New(typ).Elem()
				v.Set(reflect.ValueOf(arg).Convert(typ))
				in = append(in, v)
			}
			allocated := rendertest.Allocated(func() {
				defer func() { _ = recover() }()
				reflect.ValueOf(known[name]).Call(in)
			})
			if m.err != nil {
				refused++
			}
			if allocated > 8*uint64(min(m.used, limit))+slack {
				t.Errorf("%s allocates %d KiB and is charged %d, in round %d", name, allocated>>10, m.used>>10, round)
			}
		}
	})
	if refused < 150 {
		t.Errorf("only %d calls were refused", refused)
	}
}
