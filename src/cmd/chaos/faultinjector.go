package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

// faultInjector executes a script on a rig.
type faultInjector struct {
	rig    *rig
	script []fault
	log    io.Writer // one line for each fault
}

// run executes the script, and returns when the last fault has been repaired.
func (s *faultInjector) run(ctx context.Context) error {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range s.script {
		if err := pause(ctx, f.At-time.Since(began)); err != nil {
			break
		}
		fmt.Fprintf(s.log, "%s  %s\n", time.Now().Format("15:04:05.000"), f)
		s.rig.counts.add(string(f.Sort), 1)
		group.Go(func() error { return s.inject(ctx, f) })
	}
	return group.Wait()
}

// inject injects one fault, and repairs it after its duration.
func (s *faultInjector) inject(ctx context.Context, f fault) error {
	switch f.Sort {
	case killServer, killNode, killNodes, endServer:
		return s.down(ctx, f)
	case stallServer:
		p := s.rig.servers[f.Target]
		p.stall()
		defer p.resume()
		return pause(ctx, f.For)
	case partServer:
		var lines []*line
		for node := range s.rig.layout.nodes {
			lines = append(lines, s.rig.lines[s.rig.layout.between(f.Target, node)])
		}
		return s.disturb(ctx, f, linkFault{swallow: true}, lines...)
	case cutLine:
		l := s.rig.lines[f.Target]
		l.cut()
		if err := pause(ctx, f.For); err != nil {
			return err
		}
		return l.open(ctx)
	case holeLine, slowLine, endLine, slowClose:
	}
	return s.disturb(ctx, f, f.linkFault(), s.rig.lines[f.Target])
}

// linkFault returns what a fault does to a line.
func (f fault) linkFault() linkFault {
	span := time.Duration(f.Size) * time.Millisecond
	switch f.Sort {
	case slowLine:
		return linkFault{delay: span}
	case endLine:
		return linkFault{limit: f.Size}
	case slowClose:
		return linkFault{linger: span}
	default:
		return linkFault{swallow: true}
	}
}

// down stops processes and starts them again.
func (s *faultInjector) down(ctx context.Context, f fault) error {
	var who []*process
	switch f.Sort {
	case killNode:
		who = []*process{s.rig.nodes[f.Target]}
	case killNodes:
		who = []*process{s.rig.nodes[f.Target], s.rig.nodes[(f.Target+1)%len(s.rig.nodes)]}
	default:
		who = []*process{s.rig.servers[f.Target]}
	}
	for _, p := range who {
		if f.Sort == endServer {
			p.end(10 * time.Second)
		} else {
			p.kill()
		}
	}
	if err := pause(ctx, f.For); err != nil {
		return err
	}
	for _, p := range who {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// disturb sets a fault on lines for a while.
func (s *faultInjector) disturb(ctx context.Context, f fault, m linkFault, lines ...*line) error {
	for _, l := range lines {
		l.degrade(m)
	}
	err := pause(ctx, f.For)
	for _, l := range lines {
		l.heal()
	}
	return err
}
