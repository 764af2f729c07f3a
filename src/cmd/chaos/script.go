package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// sort is a kind of fault, as named in the report.
type sort string

// The kinds of faults. The first six affect processes, the others connections.
const (
	killServer  sort = "server killed (-9)"
	endServer   sort = "server ended (SIGTERM)"
	stallServer sort = "server stalled (SIGSTOP)"
	partServer  sort = "server parted from etcd"
	killNode    sort = "etcd node killed (-9)"
	killNodes   sort = "two etcd nodes killed (-9)"

	cutLine   sort = "line cut"
	holeLine  sort = "line black-holed"
	slowLine  sort = "line slowed"
	endLine   sort = "line broken off after some bytes"
	slowClose sort = "line closed slowly"
)

// fault is one fault of limited duration.
type fault struct {
	At     time.Duration // after the start
	Sort   sort
	Target int // number of the server, etcd node or line
	For    time.Duration
	Size   int // delay of a slow line in ms, or bytes until a connection breaks off
}

// String formats the fault for the log of a run.
func (f fault) String() string {
	return fmt.Sprintf("%-32s %2d  at %-8s for %s", f.Sort, f.Target, f.At.Round(time.Millisecond), f.For.Round(time.Millisecond))
}

// layout holds the numbers of parts that faults can affect.
type layout struct {
	servers, nodes, regions int
}

// lines returns the number of lines: one from each server to each etcd node and
// to each region.
func (l layout) lines() int { return l.servers*l.nodes + l.regions }

// between returns the number of the line from a server to an etcd node.
func (l layout) between(server, node int) int { return server*l.nodes + node }

// strength says how many faults happen, and how fast.
type strength struct {
	kills      int           // number of faults of processes
	duration   time.Duration // over which the faults are spread
	lease      time.Duration // of the servers; after a longer fault the lease has expired
	quorumLoss bool          // whether etcd may briefly lose its majority
}

// chance is the relative frequency of a kind of fault.
type chance struct {
	sort   sort
	weight int
}

// processFaults and linkFaults return the faults of processes and of lines.
func processFaults(quorumLoss bool) []chance {
	all := []chance{{killServer, 7}, {stallServer, 5}, {partServer, 2}, {endServer, 2}, {killNode, 4}}
	if quorumLoss {
		all = append(all, chance{killNodes, 2})
	}
	return all
}

func linkFaults() []chance {
	return []chance{{cutLine, 4}, {holeLine, 3}, {slowLine, 3}, {endLine, 2}, {slowClose, 1}}
}

// scheduler generates a script. It does not put two faults on one part at the same
// time.
type scheduler struct {
	layout layout
	strength

	dice   *rand.Rand
	free   map[string]time.Duration // when a part has recovered from its last fault
	faults []fault
}

// recovery is the time without faults after a part has been repaired.
const recovery = 2 * time.Second

// newScript returns the faults of a run, ordered by time. The same seed gives
// the same faults. No etcd node is killed while another one is down, unless
// quorum loss is allowed.
func newScript(seed uint64, l layout, s strength) []fault {
	a := scheduler{layout: l, strength: s, dice: rand.New(rand.NewPCG(seed, 1)), free: map[string]time.Duration{}}
	a.spread(s.kills, processFaults(s.quorumLoss))
	a.spread(s.kills*3/4, linkFaults())
	slices.SortStableFunc(a.faults, func(x, y fault) int { return cmp.Compare(x.At, y.At) })
	return a.faults
}

// spread generates n faults, each at a random time within its share of the
// duration.
func (a *scheduler) spread(n int, chances []chance) {
	for i := range n {
		share := float64(a.duration) / float64(n)
		f := a.invent(a.choose(chances))
		f.At = time.Duration(share * (float64(i) + a.dice.Float64()))
		a.place(f)
	}
}

func (a *scheduler) choose(chances []chance) sort {
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

// invent generates the target and duration of a fault.
func (a *scheduler) invent(s sort) fault {
	f := fault{Sort: s}
	switch s {
	case killServer, endServer:
		f.Target, f.For = a.dice.IntN(a.layout.servers), a.within(200*time.Millisecond, 4*time.Second)
	case stallServer, partServer:
		// Most stalls outlast the lease, so that other replicas take over while
		// the server does not know.
		f.Target, f.For = a.dice.IntN(a.layout.servers), a.within(a.lease/2, a.lease*5/2)
	case killNode, killNodes:
		f.Target, f.For = a.dice.IntN(a.layout.nodes), a.within(300*time.Millisecond, 3*time.Second)
	case cutLine:
		f.Target, f.For = a.dice.IntN(a.layout.lines()), a.within(0, 1500*time.Millisecond)
	case holeLine:
		f.Target, f.For = a.dice.IntN(a.layout.lines()), a.within(500*time.Millisecond, 6*time.Second)
	case slowLine:
		f.Target, f.For = a.dice.IntN(a.layout.lines()), a.within(time.Second, 5*time.Second)
		f.Size = 10 + a.dice.IntN(1000)
	case endLine:
		f.Target, f.For = a.dice.IntN(a.layout.lines()), a.within(500*time.Millisecond, 3*time.Second)
		f.Size = 1000 + a.dice.IntN(30000)
	case slowClose:
		f.Target, f.For = a.dice.IntN(a.layout.lines()), a.within(time.Second, 4*time.Second)
		f.Size = 100 + a.dice.IntN(1000)
	}
	return f
}

func (a *scheduler) within(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(a.dice.Int64N(int64(longest-shortest)))
}

// place adds a fault to the script, at its time or when all affected parts have
// recovered.
func (a *scheduler) place(f fault) {
	things := a.befalls(f)
	for _, thing := range things {
		f.At = max(f.At, a.free[thing])
	}
	for _, thing := range things {
		a.free[thing] = f.At + f.For + recovery
	}
	a.faults = append(a.faults, f)
}

// befalls returns the parts that a fault affects. All of etcd is one part,
// because its nodes share a majority.
func (a *scheduler) befalls(f fault) []string {
	line := func(n int) string { return fmt.Sprintf("line %d", n) }
	server := fmt.Sprintf("server %d", f.Target)
	switch f.Sort {
	case killServer, endServer, stallServer:
		return []string{server}
	case partServer:
		things := []string{server}
		for node := range a.layout.nodes {
			things = append(things, line(a.layout.between(f.Target, node)))
		}
		return things
	case killNode, killNodes:
		return []string{"etcd"}
	case cutLine, holeLine, slowLine, endLine, slowClose:
	}
	return []string{line(f.Target)}
}

// tally returns the number of faults of each kind.
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
