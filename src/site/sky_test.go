package site_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// sky is a cloud in memory that starts machines at once.
type sky struct {
	mu       sync.Mutex
	machines map[string]nf.Machine // by owner and name
	made     map[string]int        // machines of a name, ever
	broken   map[string]bool       // machines that fail when they start
	groups   []nf.MachineGroup     // of the calls
}

var _ site.Clouds = (*sky)(nil)

func newSky() *sky {
	return &sky{machines: map[string]nf.Machine{}, made: map[string]int{}, broken: map[string]bool{}}
}

func (s *sky) Machines(_ context.Context, cloud nf.OpenStack, g nf.MachineGroup) ([]nf.Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, g)
	if cloud.AuthURL == "" {
		return nil, nf.E(nf.Unreachable, "use", "the cloud", errors.New("the password is "+string(cloud.Password)))
	}
	var out []nf.Machine
	for key, m := range s.machines {
		if strings.HasPrefix(key, g.Owner+"/") {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b nf.Machine) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (s *sky) Create(_ context.Context, _ nf.OpenStack, g nf.MachineGroup, names []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if _, there := s.machines[g.Owner+"/"+name]; there {
			continue
		}
		s.made[name]++
		m := nf.Machine{Name: name, ID: fmt.Sprintf("%s-id-%d", name, s.made[name]), State: nf.MachineRunning, Address: fmt.Sprintf("%s.%d.example.com", name, s.made[name])}
		if s.broken[name] {
			m.State, m.Fault = nf.MachineFailed, "No valid host was found."
		}
		s.machines[g.Owner+"/"+name] = m
	}
	return nil
}

func (s *sky) Await(ctx context.Context, cloud nf.OpenStack, g nf.MachineGroup, names []string) ([]nf.Machine, error) {
	all, err := s.Machines(ctx, cloud, g)
	out := slices.DeleteFunc(all, func(m nf.Machine) bool { return !slices.Contains(names, m.Name) })
	for _, m := range out {
		if m.State != nf.MachineRunning {
			return nil, nf.E(nf.Failed, "start", "machine "+m.Name, errors.New(m.Fault))
		}
	}
	return out, err
}

func (s *sky) Delete(_ context.Context, _ nf.OpenStack, g nf.MachineGroup, names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.machines {
		owner, name, _ := strings.Cut(key, "/")
		if owner == g.Owner && (len(names) == 0 || slices.Contains(names, name)) {
			delete(s.machines, key)
		}
	}
	return nil
}

// change changes the cloud as another client does.
func (s *sky) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// lose deletes the machine of a name.
func (s *sky) lose(name string) {
	s.change(func() {
		for key, m := range s.machines {
			if m.Name == name {
				delete(s.machines, key)
			}
		}
	})
}

// names returns the ids of all machines, sorted.
func (s *sky) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{}
	for _, m := range s.machines {
		out = append(out, m.ID)
	}
	slices.Sort(out)
	return out
}

// crashingSky is the cloud as a process uses it that may die.
type crashingSky struct {
	*sky

	process *operationtest.Process
}

func (c crashingSky) Machines(ctx context.Context, cloud nf.OpenStack, g nf.MachineGroup) ([]nf.Machine, error) {
	return operationtest.Call(c.process, "list machines", func() ([]nf.Machine, error) { return c.sky.Machines(ctx, cloud, g) }, nil)
}

func (c crashingSky) Create(ctx context.Context, cloud nf.OpenStack, g nf.MachineGroup, names []string) (err error) {
	one := func() { err = c.sky.Create(ctx, cloud, g, names[:1]) } // dies before it has created the others
	if dead := c.process.Call("create machines", func() { err = c.sky.Create(ctx, cloud, g, names) }, one); dead != nil {
		return dead
	}
	return err
}

func (c crashingSky) Await(ctx context.Context, cloud nf.OpenStack, g nf.MachineGroup, names []string) ([]nf.Machine, error) {
	return operationtest.Call(c.process, "await machines", func() ([]nf.Machine, error) { return c.sky.Await(ctx, cloud, g, names) }, nil)
}

func (c crashingSky) Delete(ctx context.Context, cloud nf.OpenStack, g nf.MachineGroup, names ...string) (err error) {
	if dead := c.process.Call("delete machines", func() { err = c.sky.Delete(ctx, cloud, g, names...) }, nil); dead != nil {
		return dead
	}
	return err
}
