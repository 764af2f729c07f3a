package site

import (
	"bufio"
	"context"
	"io"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Runner changes hosts. Running a job again, after it has ended in whatever way,
// does no harm and completes it.
type Runner interface {
	// Run carries out a job, and yields what happens until that is over. An error
	// ends the sequence: nf.Unreachable for a host that cannot be talked to,
	// nf.Failed for what did not work there, nf.Unsupported when this service
	// cannot run the job at all. When the context ends, or the loop stops, nothing
	// that was started goes on when the sequence has ended, as far as it can
	// still be reached.
	Run(ctx context.Context, job Job) iter.Seq2[Event, error]
}

// Job is what a runner is to do.
type Job struct {
	Action   Action
	Site     nf.Site // with its hosts, each with its key
	Material nf.SiteMaterial
	Targets  []string // of Shrink: names of the workers that leave
	Dead     []string // of Shrink: those of them that cannot be reached
}

// Action says what a job does with the hosts.
type Action string

// The actions.
const (
	Build  Action = "build"  // makes the hosts that are not leaving a cluster, or completes it
	Shrink Action = "shrink" // takes workers out of the cluster, and resets them
	Reset  Action = "reset"  // makes all hosts what they were before
)

// Event is one thing that happened in a run. Number, Time and Step are not the
// runner's to set. It may hold secrets: they are masked before it is kept.
type Event struct {
	nf.SiteEvent

	Kubeconfig nf.Secret // of Build, once: what the region is registered with
}

// Reach talks to a host, and returns its public key, with which the host has
// proved itself. It is nf.Unreachable, with a reason: the host does not answer
// ("dns", "tcp", "timeout", "ssh"), is another one than was pinned ("host-key"), or
// does not let us in ("unauthorized").
type Reach func(ctx context.Context, host nf.SiteHost, m nf.SiteMaterial) (key string, err error)

// Regions is what is asked of the registered cloud regions.
type Regions interface {
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Register probes a region and keeps it; nf.Exists when the id is taken.
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	// UpdateRegion edits a region; a new kubeconfig is probed first.
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	// RemoveRegion forgets a region; nf.Conflict while instances use it.
	RemoveRegion(ctx context.Context, id string) error
	// Users yields the ids of the instances that use a region.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[string, error]
}

// Terminate takes a VNF instance down, and returns when it is gone. One that is
// gone already is no error. Another operation on it, which waits is told of, is
// let come to its end first; an error of waits is Terminate's, and every other
// names the instance.
type Terminate func(ctx context.Context, instance string, waits func(operation string) error) error

// maxLine is how long a line of output may be before it is cut in two.
const maxLine = 64 << 10

// Lines yields the lines of an output, without their ends. A line of more than
// 64 KiB comes in pieces: what writes it must not be kept waiting.
func Lines(r io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 2*maxLine)
		lines.Split(func(data []byte, end bool) (int, []byte, error) {
			advance, token, err := bufio.ScanLines(data, end)
			if advance == 0 && token == nil && len(data) >= maxLine {
				return maxLine, data[:maxLine], nil
			}
			return advance, token, err
		})
		for lines.Scan() {
			if !yield(lines.Text()) {
				return
			}
		}
	}
}
