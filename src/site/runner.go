package site

import (
	"bufio"
	"context"
	"io"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Runner changes hosts. A job may be run again, however it ended; running it
// again completes it.
type Runner interface {
	// Run runs a job, and yields events until the job has ended. An error ends the
	// sequence: nf.Unreachable for a host that cannot be reached, nf.Failed for a
	// failure on a host, nf.Unsupported if this service cannot run the job at all.
	// If the context ends or the loop stops, everything that was started is
	// stopped before the sequence ends, as far as it can still be reached.
	Run(ctx context.Context, job Job) iter.Seq2[Event, error]
}

// Job is a task for a runner.
type Job struct {
	Action  Action
	Site    nf.Site // with its hosts, each with its key
	Secrets nf.SiteSecrets
	Targets []string // for Shrink: names of the workers that leave
	Dead    []string // for Shrink: those of them that cannot be reached
}

// Action is what a job does to the hosts.
type Action string

// The actions.
const (
	Build  Action = "build"  // makes a cluster of the hosts that are not leaving, or completes it
	Shrink Action = "shrink" // removes workers from the cluster, and resets them
	Reset  Action = "reset"  // resets all hosts to their state before the build
	Run    Action = "run"    // runs a script, for a VNF that is not a site; only the script driver does
)

// Event is an event of a run. The runner does not set Number, Time and Step.
// Secrets in it are masked before it is stored.
type Event struct {
	nf.LogEntry

	Kubeconfig nf.Secret   // of Build, once: for the registration of the region
	Hidden     []nf.Secret // further secrets that the run has found, which later events must not show
}

// HostProbe connects to a host, and returns the public key that the host has
// proved. It returns nf.Unreachable with a reason: the host does not answer
// ("dns", "tcp", "timeout", "ssh"), has another key than the pinned one
// ("host-key"), or denies the credential ("unauthorized").
type HostProbe func(ctx context.Context, host nf.SiteHost, m nf.SiteSecrets) (key string, err error)

// Clouds creates and deletes virtual machines. Each call can be repeated.
type Clouds interface {
	// Machines returns the machines of a group.
	Machines(ctx context.Context, cloud nf.OpenStack, group nf.MachineGroup) ([]nf.Machine, error)
	// Create creates the machines that do not exist.
	Create(ctx context.Context, cloud nf.OpenStack, group nf.MachineGroup, names []string) error
	// Await waits until machines run, and returns them. It returns nf.Failed if one
	// does not.
	Await(ctx context.Context, cloud nf.OpenStack, group nf.MachineGroup, names []string) ([]nf.Machine, error)
	// Delete deletes machines, or all of the group without names, and waits until they
	// are gone.
	Delete(ctx context.Context, cloud nf.OpenStack, group nf.MachineGroup, names ...string) error
}

// Holds prevents the removal of regions. Both methods can be repeated.
type Holds interface {
	// Hold returns nf.NotFound if the region is not registered.
	Hold(ctx context.Context, h nf.Holding) error
	Release(ctx context.Context, h nf.Holding) error
}

// Regions gives access to the registered cloud regions.
type Regions interface {
	// Region returns a region. It returns nf.NotFound if the region is not
	// registered.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Register probes a region and stores it. It returns nf.Exists if the id is
	// taken.
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	// UpdateRegion edits a region. It probes a new access first.
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	// RemoveRegion deregisters a region. It returns nf.Conflict while instances
	// use it.
	RemoveRegion(ctx context.Context, id string) error
	// Users yields the holders of a region.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error]
}

// Instances terminates VNF instances.
type Instances interface {
	// Terminate starts the termination of an instance. It returns nf.NotFound if
	// the instance does not exist, and nf.Busy with the operation that runs on it.
	Terminate(ctx context.Context, id string) (nf.Operation, error)
	// Wait waits until an operation ends, and returns it.
	Wait(ctx context.Context, operation string) (nf.Operation, error)
}

// Owners are the subjects that alone may terminate instances.
type Owners interface {
	// Owner returns the owner of an instance, or the zero Subject.
	Owner(ctx context.Context, instance string) (nf.Subject, error)
}

// maxLine is the length in bytes at which a line of output is split.
const maxLine = 64 << 10

// Lines yields the lines of an output, without line ends. A line of more than
// 64 KiB is yielded in pieces, so that its writer does not block.
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
