package main

import "slices"

// networksHaveUsers checks that the users of a network are the instances that are attached
// to it, that a network is deleted with its last user, and that the cluster has the objects
// of the networks and no others.
func (q *checker) networksHaveUsers() {
	attached := map[string][]string{}
	for _, in := range q.snapshot.instances {
		for _, a := range in.Networks {
			id := in.Region + "." + a.Network
			attached[id] = append(attached[id], in.ID)
		}
	}
	for _, n := range q.snapshot.networks {
		if len(n.Users) == 0 {
			q.find("orphan", "", "network %s is left, and nothing uses it", n.id())
		}
	}
	q.usersAre("network", q.snapshot.networks, attached)
	q.objectsAre("network", q.snapshot.networks, q.snapshot.links, func(name string) string { return name })
}

// volumesHaveUsers checks that the volumes are those that were created and not released,
// that their users are the instances that use them, beside the client, and that the cluster
// has their PersistentVolumes and no others.
func (q *checker) volumesHaveUsers() {
	used := map[string][]string{}
	for id, released := range q.snapshot.created {
		if !released {
			used[id] = []string{holder}
		}
	}
	for _, in := range q.snapshot.instances {
		for _, v := range in.Volumes {
			id := in.Region + "." + v.Volume
			used[id] = append(used[id], in.ID)
		}
	}
	q.usersAre("volume", q.snapshot.volumes, used)
	q.objectsAre("volume", q.snapshot.volumes, q.snapshot.disks, diskOf)
}

// usersAre compares resources, and their users, with those that must be there.
func (q *checker) usersAre(kind string, all []shared, wanted map[string][]string) {
	known := map[string]bool{}
	for _, s := range all {
		id := s.id()
		known[id] = true
		var users []string
		for _, u := range s.Users {
			users = append(users, u.ID)
		}
		slices.Sort(users)
		slices.Sort(wanted[id])
		if s.State != "active" {
			q.find("stuck", "", "%s %s is %s", kind, id, s.State)
		} else if len(users)+len(wanted[id]) > 0 && !slices.Equal(users, wanted[id]) {
			q.find("word", "", "%s %s has the users %s, and must have %s", kind, id, users, wanted[id])
		}
	}
	for _, id := range sortedKeys(wanted) {
		if !known[id] {
			q.find("word", "", "%s %s does not exist, and must have the users %s", kind, id, wanted[id])
		}
	}
}

// objectsAre compares resources with their objects in the cluster.
func (q *checker) objectsAre(kind string, all []shared, objects []string, objectOf func(name string) string) {
	for _, s := range all {
		if !slices.Contains(objects, objectOf(s.Name)) {
			q.find("word", "", "%s %s has no object in the cluster", kind, s.id())
		}
	}
	for _, object := range objects {
		if !slices.ContainsFunc(all, func(s shared) bool { return objectOf(s.Name) == object }) {
			q.find("orphan", "", "the object %s is left, and there is no such %s", object, kind)
		}
	}
}

// regionsHaveClusters checks that every region of origin cluster belongs to an instance, and
// that the clusters of every ready instance are regions.
func (q *checker) regionsHaveClusters() {
	owned := map[string]bool{}
	for _, in := range q.snapshot.instances {
		for _, c := range in.Clusters {
			owned[c.Region] = true
			there := slices.ContainsFunc(q.snapshot.regions, func(r region) bool { return r.ID == c.Region })
			if in.State == string(ready) && !there {
				q.find("word", in.Operation, "the cluster of instance %s is no region %s", in.ID, c.Region)
			}
		}
	}
	for _, r := range q.snapshot.regions {
		if !owned[r.ID] {
			q.find("orphan", "", "region %s is left, and no instance has its cluster", r.ID)
		}
	}
}
