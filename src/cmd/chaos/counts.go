package main

import (
	"maps"
	"sync"
	"time"
)

// counts holds the counters of a run, by name.
type counts struct {
	mu    sync.Mutex
	n     map[string]int
	spans map[string]time.Duration
}

func newCounts() *counts { return &counts{n: map[string]int{}, spans: map[string]time.Duration{}} }

func (c *counts) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name] += n
}

// most stores the maximum of the numbers given for a name.
func (c *counts) most(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name] = max(c.n[name], n)
}

// longest stores the maximum of the durations given for a name.
func (c *counts) longest(name string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans[name] = max(c.spans[name], d)
}

func (c *counts) all() (map[string]int, map[string]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n), maps.Clone(c.spans)
}
