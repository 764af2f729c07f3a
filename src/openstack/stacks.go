package openstack

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	sdk "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// stackMinutes is the time after which Heat ends a change of a stack.
const stackMinutes = 60

// The types of the resources of stacks that this package knows.
const (
	typeServer = "OS::Nova::Server"
	typePort   = "OS::Neutron::Port"
)

// stackTag is the tag of the stacks that the package makes. A second tag is the attempt that
// has changed the stack last, after attemptTag.
const (
	stackTag   = "k8splugin"
	attemptTag = "k8splugin-attempt-"
)

// stack is a stack as Heat lists it.
type stack struct {
	ID     string   `json:"id"`
	Name   string   `json:"stack_name"`
	Status string   `json:"stack_status"` // ACTION_STATUS
	Reason string   `json:"stack_status_reason"`
	Tags   []string `json:"tags"`
}

// changing reports whether Heat is changing the stack.
func (s *stack) changing() bool { return strings.HasSuffix(s.Status, "_IN_PROGRESS") }

// attempt returns the attempt that has changed the stack last.
func (s *stack) attempt() string {
	for _, tag := range s.Tags {
		if id, is := strings.CutPrefix(tag, attemptTag); is {
			return id
		}
	}
	return ""
}

// stacksAt returns a path below that of all stacks. Its parts may have any characters.
func stacksAt(parts ...string) string {
	escaped := []string{"stacks"}
	for _, part := range parts {
		escaped = append(escaped, url.PathEscape(part))
	}
	return strings.Join(escaped, "/")
}

// heat calls Heat at a path, which may have a query.
func (s *session) heat(ctx context.Context, method, at string, body, into any) error {
	client, err := sdk.NewOrchestrationV1(s.provider, s.inRegion())
	if err != nil {
		return err //nolint:wrapcheck // wrong translates it
	}
	resp, err := client.Request(ctx, method, client.ServiceURL(at), &gophercloud.RequestOpts{
		JSONBody: body, JSONResponse: into, OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	})
	if err == nil && into == nil {
		err = resp.Body.Close()
	}
	return err //nolint:wrapcheck // wrong translates it
}

// stack returns the stack with a name; nil if there is none. Names are unique.
func (s *session) stack(ctx context.Context, name string) (*stack, error) {
	var all struct {
		Stacks []stack `json:"stacks"`
	}
	if err := s.heat(ctx, http.MethodGet, stacksAt()+"?name="+url.QueryEscape(name), nil, &all); err != nil {
		return nil, s.wrong(ctx, "list the stacks of", err)
	}
	for _, one := range all.Stacks {
		if one.Name == name {
			return &one, nil
		}
	}
	return nil, nil
}

// ApplyStack makes Heat create a stack, or change it. It waits for the end of a present
// change before. If the attempt has changed the stack already, it does nothing.
func (c *Clouds) ApplyStack(ctx context.Context, o nf.OpenStack, st nf.Stack) error {
	params, err := Parameters(st)
	if err != nil {
		return err
	}
	s, err := c.login(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	now, err := s.stack(ctx, st.Name)
	if err != nil || now != nil && now.attempt() == st.Attempt {
		return err
	}
	if now, err = c.settle(ctx, o, st.Name); err != nil {
		return err
	}
	files := map[string]string{}
	for name, content := range st.Files {
		files[name] = string(content)
	}
	body := map[string]any{
		"template": string(st.Template), "files": files, "parameters": params, "timeout_mins": stackMinutes, "disable_rollback": true,
		"tags": stackTag + "," + attemptTag + st.Attempt,
	}
	if now == nil {
		body["stack_name"] = st.Name
		if err := s.heat(ctx, http.MethodPost, stacksAt(), body, nil); err != nil {
			return s.wrong(ctx, "create stack "+st.Name+" in", err)
		}
		return nil
	}
	if err := s.mark(ctx, *now, st.Replace); err != nil {
		return err
	}
	if err := s.heat(ctx, http.MethodPut, stacksAt(now.Name, now.ID), body, nil); err != nil {
		return s.wrong(ctx, "change stack "+st.Name+" in", err)
	}
	return nil
}

// stackResource is a resource of a stack, or of one that it contains.
type stackResource struct {
	Name   string `json:"resource_name"`
	Type   string `json:"resource_type"`
	ID     string `json:"physical_resource_id"`
	Status string `json:"resource_status"`
	Links  []struct {
		Href string `json:"href"`
		Rel  string `json:"rel"`
	} `json:"links"`
}

// owner returns the name and the id of the stack that a resource is in.
func (r stackResource) owner() []string {
	for _, l := range r.Links {
		if parts := strings.Split(strings.TrimRight(l.Href, "/"), "/"); l.Rel == "stack" && len(parts) > 2 {
			return parts[len(parts)-2:]
		}
	}
	return nil
}

// resources returns the resources of a stack, and of the stacks of its groups.
func (s *session) resources(ctx context.Context, of stack) ([]stackResource, error) {
	var all struct {
		Resources []stackResource `json:"resources"`
	}
	err := s.heat(ctx, http.MethodGet, stacksAt(of.Name, of.ID, "resources")+"?nested_depth=2", nil, &all)
	if err != nil {
		return nil, s.wrong(ctx, "list the resources of stack "+of.Name+" of", err)
	}
	return all.Resources, nil
}

// mark marks servers as unhealthy, so that the next change of the stack replaces them.
func (s *session) mark(ctx context.Context, of stack, servers []string) error {
	if len(servers) == 0 {
		return nil
	}
	all, err := s.resources(ctx, of)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Type != typeServer || !slices.Contains(servers, r.ID) {
			continue
		}
		in := cmp.Or(strings.Join(r.owner(), "/"), of.Name+"/"+of.ID)
		name, id, _ := strings.Cut(in, "/")
		err := s.heat(ctx, http.MethodPatch, stacksAt(name, id, "resources", r.Name), map[string]any{"mark_unhealthy": true, "resource_status_reason": "it is to be healed"}, nil)
		if err != nil {
			return s.wrong(ctx, "mark server "+r.ID+" of", err)
		}
	}
	return nil
}

// DeleteStack makes Heat delete a stack, which need not exist.
func (c *Clouds) DeleteStack(ctx context.Context, o nf.OpenStack, name string) error {
	s, err := c.login(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	now, err := s.stack(ctx, name)
	if err != nil || now == nil || now.Status == "DELETE_IN_PROGRESS" {
		return err
	}
	if err := s.heat(ctx, http.MethodDelete, stacksAt(now.Name, now.ID), nil, nil); err != nil {
		return nf.IgnoreNotFound(s.wrong(ctx, "delete stack "+name+" of", err))
	}
	return nil
}

// AwaitStack waits until Heat is not changing a stack, and returns the attempt that has
// changed it last. With stop, it makes Heat end the present change early. OpenStack has no
// watch: it lists the stack after pauses that grow to 15 seconds. Heat ends each change
// after an hour; until then, an outage of the cloud only takes time. AwaitStack returns
// nf.NotFound if the stack does not exist, and nf.Failed with Heat's reason if the change
// has failed.
func (c *Clouds) AwaitStack(ctx context.Context, o nf.OpenStack, name string, stop bool) (attempt string, err error) {
	if stop {
		if err := c.stop(ctx, o, name); err != nil {
			return "", err
		}
	}
	now, err := c.settle(ctx, o, name)
	switch {
	case err != nil:
		return "", err
	case now == nil:
		return "", nf.E(nf.NotFound, "find", "stack "+name, nil)
	case !strings.HasSuffix(now.Status, "_COMPLETE"):
		return now.attempt(), nf.E(nf.Failed, "change", "stack "+name, fmt.Errorf("it is %s: %s", clip(now.Status), cmp.Or(clip(now.Reason), "Heat gives no reason")))
	}
	return now.attempt(), nil
}

// stop makes Heat end a present change without taking it back. Heat refuses that for a
// deletion, and earlier versions refuse it always; the change then goes on.
func (c *Clouds) stop(ctx context.Context, o nf.OpenStack, name string) error {
	s, err := c.login(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	now, err := s.stack(ctx, name)
	if err != nil || now == nil || !now.changing() {
		return err
	}
	err = s.heat(ctx, http.MethodPost, stacksAt(now.Name, now.ID, "actions"), map[string]any{"cancel_without_rollback": nil}, nil)
	if err != nil {
		err = s.wrong(ctx, "stop the change of stack "+name+" of", err)
	}
	if kind := nf.KindOf(err); err != nil && (kind == nf.Unreachable || kind == nf.Forbidden) {
		return err
	}
	return nil
}

const (
	firstLook = time.Second // the pause doubles with each look
	lastLook  = 15 * time.Second
)

// settle returns a stack once Heat is not changing it; nil if it does not exist.
func (c *Clouds) settle(ctx context.Context, o nf.OpenStack, name string) (now *stack, err error) {
	var s *session
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	for n := 0; ; n++ {
		err = nil
		if s == nil {
			s, err = c.login(ctx, o)
		}
		if err == nil {
			now, err = s.stack(ctx, name)
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && nf.KindOf(err) != nf.Unreachable:
			return nil, err
		case err == nil && (now == nil || !now.changing()):
			return now, nil
		}
		delay.For(ctx, delay.Doubled(firstLook, lastLook, n), nil)
	}
}

// StackServers returns the servers of a stack as components of a VNF. VDU is the name of
// the server's resource. A port of the stack is a connection point with the name of its
// resource. StackServers returns nf.NotFound if the stack does not exist.
func (c *Clouds) StackServers(ctx context.Context, o nf.OpenStack, name string) ([]nf.VNFC, error) {
	s, err := c.login(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	now, err := s.stack(ctx, name)
	if err != nil {
		return nil, err
	}
	if now == nil {
		return nil, nf.E(nf.NotFound, "find", "stack "+name, nil)
	}
	all, err := s.resources(ctx, *now)
	if err != nil {
		return nil, err
	}
	points := map[string]string{}
	for _, r := range all {
		if r.Type == typePort {
			points[r.ID] = r.Name
		}
	}
	var out []nf.VNFC
	for _, r := range all {
		if r.Type != typeServer || r.ID == "" {
			continue
		}
		c := nf.VNFC{VDU: r.Name, Resource: r.ID, Workload: typeServer}
		if c.Points, err = s.points(ctx, r.ID, points); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// points returns the ports of a server that are resources of its stack, by their names.
func (s *session) points(ctx context.Context, server string, names map[string]string) ([]nf.VNFCPoint, error) {
	pages, err := ports.List(s.network, ports.ListOpts{DeviceID: server}).AllPages(ctx)
	if err != nil {
		return nil, s.wrong(ctx, "list the ports of", err)
	}
	all, err := ports.ExtractPorts(pages)
	if err != nil {
		return nil, s.wrong(ctx, "read the ports of", err)
	}
	var out []nf.VNFCPoint
	for _, p := range all {
		name, known := names[p.ID]
		if !known {
			continue
		}
		point := nf.VNFCPoint{Point: name, Port: p.ID, MAC: p.MACAddress}
		for _, ip := range p.FixedIPs {
			point.IPs = append(point.IPs, ip.IPAddress)
		}
		out = append(out, point)
	}
	slices.SortFunc(out, func(a, b nf.VNFCPoint) int { return strings.Compare(a.Point, b.Point) })
	return out, nil
}
