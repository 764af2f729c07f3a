package store_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// step is a process before one of its calls to the store: it continues when it is
// let.
type step struct {
	process string
	proceed chan bool // false: it dies here
}

// stepped lets a process make each call to the store on request.
func stepped(kv store.KV, process string, steps chan<- step) store.KV {
	return storetest.Failing{KV: kv, Fail: func(string, string) error { return pass(process, steps) }}
}

// pass waits until the process may continue.
func pass(process string, steps chan<- step) error {
	s := step{process, make(chan bool)}
	steps <- s
	if !<-s.proceed {
		return errDead
	}
	return nil
}

var errDead = errors.New("the process is dead")

// orders tries every order in which processes can make their calls, and in every
// order every death of each. Start makes the processes: functions that are run
// side by side, by name. It returns what is to be checked at the end, which is
// told of the order in words.
type orders struct {
	t      *testing.T
	names  []string
	start  func(t *testing.T, steps chan<- step) (processes map[string]func(), check func(t *testing.T, order string, dead string))
	tried  int
	random int // so many orders for each death, by chance; 0: all of them
}

func (o *orders) run() {
	for _, dies := range append([]string{""}, o.names...) {
		for at := 0; ; at++ {
			if died := o.all(dies, at); dies == "" || !died {
				break
			}
		}
	}
}

// all tries the orders in which one process dies before its nth call, and reports
// whether it did in any.
func (o *orders) all(dies string, at int) (died bool) {
	play := func(choose func(step, among int) int) *race {
		r := &race{choose: choose, dies: dies, at: at, names: o.names}
		synctest.Test(o.t, func(t *testing.T) {
			steps := make(chan step)
			processes, check := o.start(t, steps)
			ends := make(chan string)
			for name, process := range processes {
				go func() { process(); ends <- name }()
			}
			r.schedule(steps, ends)
			check(t, r.told, dies)
		})
		o.tried++
		died = died || r.died
		return r
	}
	for seed := range o.random {
		random := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // it is to be the same each time
		play(func(_, among int) int { return random.IntN(among) })
	}
	next := [][]int{nil}
	for len(next) > 0 && o.random == 0 {
		order := next[len(next)-1]
		next = next[:len(next)-1]
		r := play(func(step, _ int) int {
			if step < len(order) {
				return order[step]
			}
			return 0
		})
		for i := len(order); i < len(r.choices); i++ { // what else could have been done first
			for other := 1; other < r.choices[i]; other++ {
				next = append(next, append(append([]int{}, r.taken[:i]...), other))
			}
		}
	}
	return died
}

// race is one order of the calls of several processes.
type race struct {
	names  []string
	choose func(step, among int) int // which of the waiting processes goes first
	dies   string
	at     int

	choices, taken []int
	told           string
	died           bool
}

// schedule lets one of the waiting processes go at a time.
func (r *race) schedule(steps <-chan step, ends <-chan string) {
	waiting, calls := map[string]step{}, map[string]int{}
	for running := len(r.names); running > 0; {
		for len(waiting) < running {
			select {
			case s := <-steps:
				waiting[s.process] = s
			case <-ends:
				running--
			}
		}
		if running == 0 {
			return
		}
		names := slices.DeleteFunc(slices.Clone(r.names), func(name string) bool { _, is := waiting[name]; return !is })
		// Those that have done least come first, so that no process waits forever.
		slices.SortStableFunc(names, func(a, b string) int { return calls[a] - calls[b] })
		choice := r.choose(len(r.taken), len(names))
		r.choices, r.taken = append(r.choices, len(names)), append(r.taken, choice)
		s := waiting[names[choice]]
		delete(waiting, s.process)
		alive := s.process != r.dies || calls[s.process] < r.at
		r.died = r.died || !alive
		calls[s.process]++
		r.told += " " + s.process
		if !alive {
			r.told += "(dies)"
		}
		s.proceed <- alive
	}
}
