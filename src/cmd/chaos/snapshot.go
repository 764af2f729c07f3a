package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// snapshot is the observable state at the end of a run: the requests, the
// service's records, and the cluster's objects.
type snapshot struct {
	prefix         string // prefix of the names of all namespaces of the run
	requests       []request
	operations     []operation
	instances      []instance
	revisions      map[string][]revision // by instance
	objects        []object
	namespaces     []string
	networks       []shared
	links          []string // the objects of networks, by name
	volumes        []shared
	disks          []string        // the PersistentVolumes of volumes, by name
	created        map[string]bool // ids of the volumes that were created: whether they were released
	regions        []region        // those that clusters of instances have become
	listed         []listed        // k8s-resources of A&AI
	listedNetworks []string        // ids of the l3-networks of A&AI
	views          []string        // the lists of each server, as text
	claims         []string        // keys of the list of work
	staleRecords   []string        // keys of records of deleted instances
}

// watcher collects a snapshot.
type watcher struct {
	rig     *rig
	client  *client
	cluster *cluster
	ledger  *ledger
	prefix  string
}

// collect reads everything.
func (w *watcher) collect(ctx context.Context) (snapshot, error) {
	out := snapshot{prefix: w.prefix, requests: w.ledger.all(), revisions: map[string][]revision{}}
	var err error
	if out.operations, err = w.allOperations(ctx, -1); err != nil {
		return out, err
	}
	if err := w.collectInstances(ctx, &out); err != nil {
		return out, err
	}
	if out.objects, err = w.cluster.objects(ctx, w.prefix); err != nil {
		return out, err
	}
	if out.namespaces, err = w.cluster.namespaces(ctx, w.prefix); err != nil {
		return out, err
	}
	if out.links, err = w.cluster.links(ctx, w.prefix); err != nil {
		return out, err
	}
	if out.disks, err = w.cluster.disks(ctx, w.prefix); err != nil {
		return out, err
	}
	if out.networks, err = w.collectShared(ctx, "networks"); err != nil {
		return out, err
	}
	if out.volumes, err = w.collectShared(ctx, "volumes"); err != nil {
		return out, err
	}
	if out.regions, err = w.clusterRegions(ctx); err != nil {
		return out, err
	}
	if out.listed, err = w.rig.inventory.resources(ctx); err != nil {
		return out, err
	}
	if out.listedNetworks, err = w.rig.inventory.networks(ctx); err != nil {
		return out, err
	}
	out.created = w.ledger.volumes()
	for server := range w.rig.urls {
		view, err := w.view(ctx, server)
		if err != nil {
			return out, err
		}
		out.views = append(out.views, view)
	}
	return out, w.lookIntoStore(ctx, &out)
}

func (w *watcher) collectInstances(ctx context.Context, out *snapshot) error {
	summaries, err := w.allInstances(ctx, -1)
	if err != nil {
		return err
	}
	out.instances = make([]instance, len(summaries))
	histories := make([][]revision, len(summaries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, s := range summaries {
		group.Go(func() error {
			found, err := w.client.get(ctx, "/v1/vnf_instances/"+s.ID, &out.instances[i])
			if err != nil || !found {
				return fmt.Errorf("cannot read instance %s, which is listed: %w", s.ID, err)
			}
			var list struct{ Revisions []revision }
			_, err = w.client.get(ctx, "/v1/vnf_instances/"+s.ID+"/revisions", &list)
			histories[i] = list.Revisions
			return err
		})
	}
	err = group.Wait()
	for i, s := range summaries {
		out.revisions[s.ID] = histories[i]
	}
	return err
}

// collectShared reads the networks or the volumes with their users. One that is deleted in
// the meantime is left out.
func (w *watcher) collectShared(ctx context.Context, kind string) ([]shared, error) {
	var lists map[string]json.RawMessage
	if _, err := w.client.get(ctx, "/v1/"+kind+"?limit=1000", &lists); err != nil {
		return nil, err
	}
	var list, out []shared
	if err := json.Unmarshal(lists[kind], &list); err != nil {
		return nil, fmt.Errorf("cannot read the list of %s: %w", kind, err)
	}
	for _, listed := range list {
		var s shared
		found, err := w.client.get(ctx, "/v1/"+kind+"/"+listed.id(), &s)
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, s)
		}
	}
	return out, nil
}

// clusterRegions returns the regions that were clusters of instances.
func (w *watcher) clusterRegions(ctx context.Context) (out []region, err error) {
	var list struct {
		Regions []region `json:"cloud_regions"`
	}
	if _, err := w.client.get(ctx, "/v1/cloud_regions?limit=1000", &list); err != nil {
		return nil, err
	}
	for _, r := range list.Regions {
		if r.Origin == "cluster" {
			out = append(out, r)
		}
	}
	return out, nil
}

// view returns all lists of a server as text.
func (w *watcher) view(ctx context.Context, server int) (string, error) {
	operations, err := w.allOperations(ctx, server)
	if err != nil {
		return "", err
	}
	instances, err := w.allInstances(ctx, server)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal([]any{operations, instances})
	return string(text), err
}

func (w *watcher) allOperations(ctx context.Context, server int) ([]operation, error) {
	var out []operation
	for marker := ""; ; {
		var page struct {
			Operations []operation
			Next       string
		}
		if err := w.page(ctx, server, "/v1/operations?limit=1000", marker, &page); err != nil {
			return nil, err
		}
		out, marker = append(out, page.Operations...), page.Next
		if marker == "" {
			return out, nil
		}
	}
}

func (w *watcher) allInstances(ctx context.Context, server int) ([]summary, error) {
	var out []summary
	for marker := ""; ; {
		var page struct {
			Instances []summary `json:"vnf_instances"`
			Next      string
		}
		if err := w.page(ctx, server, "/v1/vnf_instances?limit=1000", marker, &page); err != nil {
			return nil, err
		}
		out, marker = append(out, page.Instances...), page.Next
		if marker == "" {
			return out, nil
		}
	}
}

// page reads a page of a list, from one server or, for -1, from any.
func (w *watcher) page(ctx context.Context, server int, path, marker string, out any) error {
	if marker != "" {
		path += "&marker=" + marker
	}
	if server >= 0 {
		return w.client.getFrom(ctx, server, path, out)
	}
	_, err := w.client.get(ctx, path, out)
	return err
}

// lookIntoStore collects the store's remaining claims and records of deleted
// instances.
func (w *watcher) lookIntoStore(ctx context.Context, out *snapshot) error {
	claims, err := w.rig.keys(ctx, "claims/")
	if err != nil {
		return err
	}
	out.claims = claims
	names, ids := map[string]bool{}, map[string]bool{}
	for _, in := range out.instances {
		names[in.Region+"/"+in.Namespace+"/"+in.Name], ids[in.ID] = true, true
	}
	for prefix, known := range map[string]func(rest string) bool{
		"instancenames/": func(rest string) bool { return names[rest] },
		"revisions/":     func(rest string) bool { id, _, _ := strings.Cut(rest, "/"); return ids[id] },
		"instances/":     func(rest string) bool { return ids[rest] },
	} {
		keys, err := w.rig.keys(ctx, prefix)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if !known(strings.TrimPrefix(key, prefix)) {
				out.staleRecords = append(out.staleRecords, key)
			}
		}
	}
	slices.Sort(out.staleRecords)
	return nil
}

// keep writes the servers' records of all operations and instances to a file,
// to analyze findings.
func (w *watcher) keep(ctx context.Context, path string) error {
	var out []byte
	for _, list := range []string{"/v1/operations", "/v1/vnf_instances"} {
		for marker := ""; ; {
			var page json.RawMessage
			if err := w.page(ctx, -1, list+"?limit=100", marker, &page); err != nil {
				return err
			}
			out = append(append(out, page...), '\n')
			var next struct{ Next string }
			if err := json.Unmarshal(page, &next); err != nil {
				return err
			}
			if marker = next.Next; marker == "" {
				break
			}
		}
	}
	if err := os.WriteFile(path, out, 0o600); err != nil {
		return fmt.Errorf("cannot save the responses of the servers: %w", err)
	}
	return nil
}
