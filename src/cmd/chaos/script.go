package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// sort is one sort of fault, in the words of the report.
type sort string

// The sorts of faults. The first six befall processes, the others connections.
const (
	killServer  sort = "server killed (-9)"
	endServer   sort = "server ended (SIGTERM)"
	stallServer sort = "server stalled (SIGSTOP)"
	partServer  sort = "server parted from etcd"
	killNode    sort = "etcd node killed (-9)"
	killNodes   sort = "two etcd nodes killed (-9)"

	cutLine  sort = "line cut"
	holeLine sort = "line black-holed"
	slowLine sort = "line slowed"
	endLine  sort = "line broken off after some bytes"
	lazyLine sort = "line closed slowly"
)

// fault is one thing that goes wrong for a while.
type fault struct {
	At     time.Duration // after the beginning
	Sort   sort
	Target int // the number of the server, of the etcd node or of the line
	For    time.Duration
	Size   int // milliseconds of a slow line, bytes of one that breaks off
}

// String tells the fault as the log of a run does.
func (f fault) String() string {
	return fmt.Sprintf("%-32s %2d  at %-8s for %s", f.Sort, f.Target, f.At.Round(time.Millisecond), f.For.Round(time.Millisecond))
}

// layout is what faults can befall.
type layout struct {
	servers, nodes, regions int
}

// lines returns the number of lines: one from each server to each etcd node,
// and one to each region.
func (l layout) lines() int { return l.servers*l.nodes + l.regions }

// between returns the number of the line from a server to an etcd node.
func (l layout) between(server, node int) int { return server*l.nodes + node }

// strength is how much goes wrong, and how fast.
type strength struct {
	kills      int           // faults of processes
	duration   time.Duration // over which they are spread
	lease      time.Duration // of the servers: what outlasts it is taken for dead
	quorumLoss bool          // whether etcd may lose its majority, for a moment
}

// chance is how often one sort of fault comes.
type chance struct {
	sort   sort
	weight int
}

// mishaps and troubles are what befalls processes and what befalls lines.
func mishaps(quorumLoss bool) []chance {
	all := []chance{{killServer, 7}, {stallServer, 5}, {partServer, 2}, {endServer, 2}, {killNode, 4}}
	if quorumLoss {
		all = append(all, chance{killNodes, 2})
	}
	return all
}

func troubles() []chance {
	return []chance{{cutLine, 4}, {holeLine, 3}, {slowLine, 3}, {endLine, 2}, {lazyLine, 1}}
}

// author writes a script: it keeps two faults from meeting on one thing.
type author struct {
	layout
	strength

	dice   *rand.Rand
	free   map[string]time.Duration // when a thing has recovered from its last fault
	faults []fault
}

// recovery is how long a thing is left alone after it has been made good.
const recovery = 2 * time.Second

// newScript returns the faults of a run in the order of time. The same seed
// gives the same faults. No etcd node is killed while another one is away,
// unless the loss of the quorum is asked for.
func newScript(seed uint64, l layout, s strength) []fault {
	a := author{layout: l, strength: s, dice: rand.New(rand.NewPCG(seed, 1)), free: map[string]time.Duration{}}
	a.spread(s.kills, mishaps(s.quorumLoss))
	a.spread(s.kills*3/4, troubles())
	slices.SortStableFunc(a.faults, func(x, y fault) int { return cmp.Compare(x.At, y.At) })
	return a.faults
}

// spread writes n faults, each somewhere in its share of the time.
func (a *author) spread(n int, chances []chance) {
	for i := range n {
		share := float64(a.duration) / float64(n)
		f := a.invent(a.choose(chances))
		f.At = time.Duration(share * (float64(i) + a.dice.Float64()))
		a.place(f)
	}
}

func (a *author) choose(chances []chance) sort {
	total := 0
	for _, c := range chances {
		total += c.weight
	}
	n := a.dice.IntN(total)
	for _, c := range chances {
		if n -= c.weight; n < 0 {
			return c.sort
		}
	}
	return chances[0].sort
}

// invent makes up where a fault happens, and for how long.
func (a *author) invent(s sort) fault {
	f := fault{Sort: s}
	switch s {
	case killServer, endServer:
		f.Target, f.For = a.dice.IntN(a.servers), a.within(200*time.Millisecond, 4*time.Second)
	case stallServer, partServer:
		// Most outlast the lease: the server is dead to the others, and does not
		// know it.
		f.Target, f.For = a.dice.IntN(a.servers), a.within(a.lease/2, a.lease*5/2)
	case killNode, killNodes:
		f.Target, f.For = a.dice.IntN(a.nodes), a.within(300*time.Millisecond, 3*time.Second)
	case cutLine:
		f.Target, f.For = a.dice.IntN(a.lines()), a.within(0, 1500*time.Millisecond)
	case holeLine:
		f.Target, f.For = a.dice.IntN(a.lines()), a.within(500*time.Millisecond, 6*time.Second)
	case slowLine:
		f.Target, f.For = a.dice.IntN(a.lines()), a.within(time.Second, 5*time.Second)
		f.Size = 10 + a.dice.IntN(1000)
	case endLine:
		f.Target, f.For = a.dice.IntN(a.lines()), a.within(500*time.Millisecond, 3*time.Second)
		f.Size = 1000 + a.dice.IntN(30000)
	case lazyLine:
		f.Target, f.For = a.dice.IntN(a.lines()), a.within(time.Second, 4*time.Second)
		f.Size = 100 + a.dice.IntN(1000)
	}
	return f
}

func (a *author) within(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(a.dice.Int64N(int64(longest-shortest)))
}

// place puts a fault into the script: at its time, or as soon as all that it
// befalls has recovered.
func (a *author) place(f fault) {
	things := a.befalls(f)
	for _, thing := range things {
		f.At = max(f.At, a.free[thing])
	}
	for _, thing := range things {
		a.free[thing] = f.At + f.For + recovery
	}
	a.faults = append(a.faults, f)
}

// befalls names what a fault happens to. All of etcd is one thing: its nodes
// share a majority.
func (a *author) befalls(f fault) []string {
	line := func(n int) string { return fmt.Sprintf("line %d", n) }
	server := fmt.Sprintf("server %d", f.Target)
	switch f.Sort {
	case killServer, endServer, stallServer:
		return []string{server}
	case partServer:
		things := []string{server}
		for node := range a.nodes {
			things = append(things, line(a.between(f.Target, node)))
		}
		return things
	case killNode, killNodes:
		return []string{"etcd"}
	case cutLine, holeLine, slowLine, endLine, lazyLine:
	}
	return []string{line(f.Target)}
}

// tally returns how many faults there are of each sort, by the sort.
func tally(faults []fault) map[sort]int {
	out := map[sort]int{}
	for _, f := range faults {
		out[f.Sort]++
	}
	return out
}

// ends returns when the last fault is over.
func ends(faults []fault) time.Duration {
	var last time.Duration
	for _, f := range faults {
		last = max(last, f.At+f.For)
	}
	return last
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
