package aaisource

import (
	"context"
	"net/netip"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Documents implements aaisync.Source.
func (s *Source) Documents(ctx context.Context, id string) (aaisync.Subject, []aai.Document, error) {
	subject, documents, err := s.subject(ctx, id)
	if err != nil {
		return subject, nil, err
	}
	docs, err := documents()
	return subject, docs, err
}

func (s *Source) instanceDocuments(ctx context.Context, in nf.Instance, place aai.Place) ([]aai.Document, error) {
	facts := aai.Instance{ID: in.ID, Name: in.Name, Place: place, VNF: in.AAI.VNF, Module: in.AAI.Module}
	if in.Release != "" {
		facts.Name = in.Release
	}
	refs := make([]nf.Ref, 0, len(in.Inventory))
	for _, it := range nf.Judged(in.Inventory) {
		refs = append(refs, it.Ref)
	}
	objects, err := s.cfg.Regions.Objects(ctx, in, refs)
	if err != nil {
		return nil, err
	}
	for i, o := range objects {
		if o != nil { // one that cannot be read has only a name, and may exist
			facts.Objects = append(facts.Objects, objectOf(refs[i], o))
		}
	}
	pods, err := s.cfg.Regions.Pods(ctx, in.ID)
	if nf.IgnoreNotFound(err) != nil {
		return nil, err
	}
	written, err := s.writtenNetworks(ctx, in.Region, pods)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		facts.Pods = append(facts.Pods, podOf(p, written))
	}
	var out []aai.Document
	if s.cfg.Written.Resources {
		out = s.cfg.Scheme.Resources(facts)
	}
	if s.cfg.Written.Servers {
		out = append(out, s.cfg.Scheme.Servers(facts)...)
	}
	return out, nil
}

// objectOf returns an object without its content.
func objectOf(ref nf.Ref, content map[string]any) aai.Object {
	metadata, _ := content["metadata"].(map[string]any)
	out := aai.Object{Ref: ref, Labels: map[string]string{}}
	out.Generation, _ = metadata["generation"].(int64)
	labels, _ := metadata["labels"].(map[string]any)
	for name, value := range labels {
		out.Labels[name], _ = value.(string)
	}
	return out
}

// writtenNetworks returns the ids of the networks that A&AI has, by the names that pods
// call them. The network of the cluster is not one of them.
func (s *Source) writtenNetworks(ctx context.Context, region string, pods []nf.Pod) (map[string]string, error) {
	out := make(map[string]string)
	if !s.cfg.Written.Networks {
		return out, nil
	}
	for _, p := range pods {
		for _, i := range p.Interfaces {
			if _, known := out[i.Network]; known || i.Network == "" || strings.Contains(i.Network, "/") {
				continue
			}
			n, err := s.cfg.Networks.Get(ctx, nf.SharedID(region, i.Network))
			if nf.IgnoreNotFound(err) != nil {
				return nil, err
			}
			out[i.Network] = n.ID
		}
	}
	return out, nil
}

// podOf returns a pod, with the interface of the cluster's network if nothing tells its
// interfaces.
func podOf(p nf.Pod, networks map[string]string) aai.Pod {
	out := aai.Pod{
		UID: p.UID, Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Phase: p.Phase, Ready: p.Status == nf.Current && p.Phase == "Running",
		Job: p.Workload.Kind == "Job" || p.Workload.Kind == "CronJob",
	}
	interfaces := p.Interfaces
	if len(interfaces) == 0 && len(p.IPs) > 0 {
		interfaces = []nf.Interface{{Name: "eth0", IPs: p.IPs}}
	}
	for _, i := range interfaces {
		one := aai.Interface{Name: i.Name, MAC: i.MAC, Network: i.Network, NetworkID: networks[i.Network]}
		for _, text := range i.IPs {
			if ip, bits, ok := parseAddress(text); ok {
				one.Addresses = append(one.Addresses, aai.Address{IP: ip, Bits: bits})
			}
		}
		out.Interfaces = append(out.Interfaces, one)
	}
	return out
}

// parseAddress reads an address with or without the length of its prefix.
func parseAddress(text string) (ip netip.Addr, bits int, ok bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Addr(), p.Bits(), true
	}
	ip, err := netip.ParseAddr(text)
	return ip, 0, err == nil
}

func (s *Source) networkDocuments(n nf.Network, place aai.Place) ([]aai.Document, error) {
	layout, err := s.cfg.Networks.Layout(n)
	if err != nil {
		return nil, err
	}
	facts := aai.Network{
		ID: n.ID, Name: n.Name, Driver: n.Driver, Attachment: nf.NetworkNamespace + "/" + n.Name, Physical: layout.Physical,
		Active: n.State == nf.SharedActive, Place: place, VLAN: layout.VLAN,
	}
	for _, r := range layout.Ranges {
		facts.Ranges = append(facts.Ranges, aai.Range(r))
	}
	return []aai.Document{s.cfg.Scheme.Network(facts)}, nil
}
