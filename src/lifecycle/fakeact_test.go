package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// replicas is the field that Scaling sets.
const replicas = "/data/replicas"

func (c *fakeCluster) Scaling(ctx context.Context, owner nf.Subject, wanted []nf.Scaling, _ bool) ([]nf.Setting, error) {
	leave, err := c.enter(ctx, "scaling")
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []nf.Setting
	for _, s := range wanted {
		live := c.objects[s.Ref.Key()]
		if live == nil || live.owner != owner {
			return nil, nf.E(nf.NotFound, "scale", s.Ref.String(), nil)
		}
		setting := nf.Setting{Ref: s.Ref, Path: s.Path, Was: json.RawMessage("1"), Value: json.RawMessage("1")}
		if s.Path == "" {
			setting.Path, setting.Scale = replicas, true
		}
		if is, found := nf.At(live.object.Object, setting.Path); found {
			setting.Was = json.RawMessage(fmt.Sprintf("%#v", is))
		}
		if s.Replicas != nil {
			setting.Value = json.RawMessage(fmt.Sprint(*s.Replicas))
		} else if present, ok := nf.ValueOf(setting.Was).(int64); ok {
			setting.Value = json.RawMessage(fmt.Sprint(present + s.By))
		}
		out = append(out, setting)
	}
	return out, nil
}

func (c *fakeCluster) Restarting(ctx context.Context, _ nf.Subject, refs []nf.Ref, value json.RawMessage) ([]nf.Setting, error) {
	leave, err := c.enter(ctx, "restarting")
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []nf.Setting
	for _, ref := range refs {
		is, _ := nf.At(c.objects[ref.Key()].object.Object, nf.RestartPath)
		was, err := nf.RawOf(is)
		if err != nil {
			return nil, err
		}
		out = append(out, nf.Setting{Ref: ref, Path: nf.RestartPath, Value: value, Was: was})
	}
	return out, nil
}

// powered is the field that Machines sets.
const powered = "/data/run"

// Machines returns settings that start and stop ConfigMaps, and those that restart and
// migrate them.
func (c *fakeCluster) Machines(ctx context.Context, _ nf.Subject, refs []nf.Ref, verb nf.Verb) ([]nf.Setting, error) {
	leave, err := c.enter(ctx, "machines "+string(verb))
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []nf.Setting
	for _, ref := range refs {
		s := nf.Setting{Ref: ref, Machine: verb, Guest: "guest"}
		if verb == nf.Start || verb == nf.Stop {
			is, _ := nf.At(c.objects[ref.Key()].object.Object, powered)
			was, err := nf.RawOf(is)
			if err != nil {
				return nil, err
			}
			s.Path, s.Was, s.Value, s.Guest = powered, was, json.RawMessage(`"`+verb+`"`), ""
		}
		out = append(out, s)
	}
	return out, nil
}

func (c *fakeCluster) Set(ctx context.Context, owner nf.Subject, settings []nf.Setting, dryRun bool) ([]nf.Change, error) {
	leave, err := c.enter(ctx, fmt.Sprintf("set %v %t", len(settings), dryRun))
	if err != nil {
		return nil, err
	}
	defer leave()
	defer c.touch()
	var out []nf.Change
	for _, s := range settings {
		if wrong, rejects := c.rejects[s.Name]; rejects && wrong == string(s.Value) && !dryRun {
			return out, nf.E(nf.Invalid, "set", s.Ref.String(), nil)
		}
		change := nf.Change{Ref: s.Ref, Action: nf.Unchanged}
		if live := c.objects[s.Key()]; live != nil && live.owner == owner {
			change.UID = "uid"
			if s.Path == "" { // it migrates, and is ready when it has
				change.Action = nf.Created
				out = append(out, change)
				continue
			}
			if is, _ := nf.At(live.object.Object, s.Path); !reflect.DeepEqual(is, nf.ValueOf(s.Value)) {
				change.Action = nf.Configured
			}
			if object := live.object.DeepCopy(); !dryRun && nf.SetAt(object.Object, s.Path, nf.ValueOf(s.Value)) {
				live.object = object
			}
		}
		out = append(out, change)
	}
	return out, nil
}

// Evict evicts a pod, which is an object of the kind Pod here. A pod with a budget is
// not evicted. Another pod takes its place at once.
func (c *fakeCluster) Evict(ctx context.Context, _ nf.Subject, pod nf.HealPod, task nf.HealTask) (nf.Change, error) {
	call := fmt.Sprintf("evict %s %t %s", pod.Name, task.Force, task.Patience)
	if task.Grace != nil {
		call = fmt.Sprintf("shorten %s %t %s", pod.Name, task.Force, *task.Grace)
	}
	leave, err := c.enter(ctx, call)
	if err != nil {
		return nf.Change{}, err
	}
	defer leave()
	defer c.touch()
	if budget := c.rejects[pod.Name]; budget != "" && !task.Force {
		return nf.Change{}, &nf.Error{Kind: nf.Failed, Op: "evict", Subject: pod.Ref.String(), Reason: nf.ReasonBudget, Err: fmt.Errorf("disruption budget %s", budget)}
	}
	for i, p := range c.pods {
		if p.Ref == pod.Ref && p.UID == pod.UID {
			if task.Grace == nil { // it is replaced
				c.pods[i].UID += "+"
			}
			return nf.Change{Ref: pod.Ref, UID: pod.UID, Action: nf.Deleted}, nil
		}
	}
	return nf.Change{Ref: pod.Ref, UID: pod.UID, Action: nf.Unchanged}, nil
}

// field returns a field of an object of the namespace ns as Go prints it, or "<nil>".
func (c *fakeCluster) field(name, path string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		if o.object.GetName() == name {
			is, _ := nf.At(o.object.Object, path)
			return fmt.Sprint(is)
		}
	}
	return "absent"
}

// failFirstSet has an object fail after a field of it is set, and be ready after it is set
// once more.
func (s *site) failFirstSet(name, path, why string) {
	s.cluster.before = func(call string) {
		switch {
		case call != "set 1 false":
		case s.cluster.field(name, path) == "<nil>":
			s.cluster.script(name, nf.StatusFailed, why)
		default:
			s.cluster.script(name, nf.Current, "")
		}
	}
}
