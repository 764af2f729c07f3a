package lifecycle_test

import (
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// script says the status of an object from now on.
func (c *fakeCluster) script(name string, status nf.Status, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status[name] = health{status, message}
	c.touch()
}

// refuse says what applying an object fails with from now on.
func (c *fakeCluster) refuse(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applyErr[name] = err
}

// leave makes the region answer nothing until it is called with nil.
func (c *fakeCluster) leave(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreachable = cause
	c.touch()
}

// fix says that an object's fields cannot be changed from now on.
func (c *fakeCluster) fix(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed[name] = true
}

// lose deletes an object, as another client would.
func (c *fakeCluster) lose(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.objects, func(_ string, o *fakeObject) bool { return o.object.GetName() == name })
	c.touch()
}

// live returns the names of the objects that exist, sorted.
func (c *fakeCluster) live() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []string{}
	for _, o := range c.objects {
		out = append(out, o.object.GetName())
	}
	slices.Sort(out)
	return out
}

// madeNamespaces returns the namespaces that the service made, sorted.
func (c *fakeCluster) madeNamespaces() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []string{}
	for name, is := range c.namespaces {
		if is.Created {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// asked returns the calls that change the cluster, in order.
func (c *fakeCluster) asked(prefixes ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []string{}
	for _, call := range c.calls {
		for _, p := range prefixes {
			if len(call) >= len(p) && call[:len(p)] == p {
				out = append(out, call)
			}
		}
	}
	return out
}
