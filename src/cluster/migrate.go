package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// once restarts or migrates a machine, unless that has happened since the setting was
// made: then its VirtualMachineInstance, or the latest migration of that, is another.
func (o fieldSetter) once(ctx context.Context) (nf.Change, error) {
	unchanged := nf.Change{Ref: o.object.target.ref, Action: nf.Unchanged}
	vm, err := o.object.read(ctx, string(o.setting.Machine))
	if nf.KindOf(err) == nf.NotFound {
		unchanged.Message = "it does not exist"
		return unchanged, nil
	}
	if err != nil {
		return nf.Change{}, err
	}
	unchanged.UID, unchanged.Generation = string(vm.GetUID()), vm.GetGeneration()
	m, err := o.machines.at(ctx, o.object, vm)
	if err != nil {
		return nf.Change{}, err
	}
	same := m.guest != nil && string(m.guest.GetUID()) == o.setting.Guest
	if o.setting.Machine == nf.Migrate {
		if !same {
			return nf.Change{}, m.refuse(nf.Conflict, nf.Migrate, "was restarted or stopped in the meantime")
		}
		return o.migrate(ctx, m)
	}
	if !same {
		unchanged.Message = "it was restarted"
		return unchanged, nil
	}
	change := nf.Change{Ref: m.guestTarget().ref, Action: nf.Deleted, UID: o.setting.Guest, Message: "replaced by " + m.object.target.ref.String()}
	if m.guest.GetDeletionTimestamp() == nil && m.requested() == "" {
		err = o.restart(ctx, m)
	}
	return change, err
}

// restart has KubeVirt replace the instance of the machine.
func (o fieldSetter) restart(ctx context.Context, m machine) error {
	build, err := m.put(nf.Restart, o.dry)
	if m.served.verbs == "" {
		build, err = m.deleteGuest(o.dry)
	}
	if err != nil {
		return err
	}
	_, err = m.object.client.send(ctx, build, nil)
	if m.served.verbs == "" && apierrors.IsNotFound(err) {
		return nil // it is gone
	}
	return err
}

// deleteGuest returns the request that deletes the instance of the machine; KubeVirt
// creates another.
func (m machine) deleteGuest(dry bool) (func() *rest.Request, error) {
	policy, uid := metav1.DeletePropagationBackground, m.guest.GetUID()
	options := metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &policy,
	}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	body, err := json.Marshal(options)
	return func() *rest.Request {
		return m.object.client.request(http.MethodDelete, m.guestTarget()).SetHeader("Content-Type", "application/json").Body(body)
	}, err
}

// migratable returns the uids of the latest migrations of the machine, with spaces
// between them, or an error if it cannot be migrated now.
func (m machine) migratable(ctx context.Context) (last string, err error) {
	if no, why := condition(m.guest, "LiveMigratable", "False"); no {
		return "", m.refuse(nf.Unsupported, nf.Migrate, "cannot be migrated while it runs: "+cmp.Or(clipped(why), "KubeVirt gives no reason"))
	}
	if yes, _ := condition(m.guest, "LiveMigratable", "True"); !yes {
		return "", m.refuse(nf.Conflict, nf.Migrate, "is starting: KubeVirt does not report yet whether it can be migrated")
	}
	latest, err := m.migrations(ctx)
	if err != nil {
		return "", err
	}
	var uids []string
	for _, u := range latest {
		if !hasEnded(u) {
			return "", m.refuse(nf.Conflict, nf.Migrate, fmt.Sprintf("is being migrated by VirtualMachineInstanceMigration %s", u.GetName()))
		}
		uids = append(uids, string(u.GetUID()))
	}
	return strings.Join(uids, " "), nil
}

// hasEnded reports whether an instance or a migration of a machine has reached its last
// phase.
func hasEnded(u *unstructured.Unstructured) bool {
	phase := text(u.Object, "status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// migrations returns the latest migrations of the machine, by name. There can be several:
// times of creation are full seconds.
func (m machine) migrations(ctx context.Context) ([]*unstructured.Unstructured, error) {
	found, err := m.object.client.whole(ctx, m.served.migrating.in(m.object.target.ref.Namespace), query{})
	if err != nil {
		return nil, m.object.client.region.fail(ctx, "list", "VirtualMachineInstanceMigration objects", err)
	}
	defer found.release()
	var latest []*unstructured.Unstructured
	for i := range found.items {
		u := &found.items[i]
		if text(u.Object, "spec", "vmiName") != m.object.target.ref.Name {
			continue
		}
		if is := u.GetCreationTimestamp(); len(latest) > 0 {
			was := latest[0].GetCreationTimestamp()
			if is.Before(&was) {
				continue
			}
			if was.Before(&is) {
				latest = nil
			}
		}
		latest = append(latest, u.DeepCopy())
	}
	return latest, nil
}

// migration returns a migration that has begun since those with the known uids, or nil.
func (m machine) migration(ctx context.Context, known string) (*unstructured.Unstructured, error) {
	latest, err := m.migrations(ctx)
	for _, u := range latest {
		if !slices.Contains(strings.Fields(known), string(u.GetUID())) {
			return u, err
		}
	}
	return nil, err
}

// migrate has KubeVirt migrate the machine, unless a migration has begun since the
// setting was made.
func (o fieldSetter) migrate(ctx context.Context, m machine) (nf.Change, error) {
	latest, err := m.migration(ctx, o.setting.Last)
	if err != nil {
		return nf.Change{}, err
	}
	if latest == nil {
		build, err := o.migrationRequest(m)
		if err == nil {
			_, err = m.object.client.send(ctx, build, nil)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nf.Change{}, err
		}
		if o.dry {
			return nf.Change{Ref: m.object.target.ref, Action: nf.Configured, UID: string(m.vm.GetUID()), Message: "migrated from node " + text(m.guest.Object, "status", "nodeName")}, nil
		}
		if latest, err = m.migration(ctx, o.setting.Last); err != nil {
			return nf.Change{}, err
		}
	}
	if latest == nil {
		return nf.Change{}, m.refuse(nf.Failed, nf.Migrate, "has no new VirtualMachineInstanceMigration, although KubeVirt has accepted the request")
	}
	return o.adopt(ctx, m, latest)
}

// migrationRequest returns the request for a migration: to KubeVirt's API of verbs, or else for
// the object that this would create. Its name is the same if the request is repeated.
func (o fieldSetter) migrationRequest(m machine) (func() *rest.Request, error) {
	if m.served.verbs != "" {
		return m.put(nf.Migrate, o.dry)
	}
	sum := sha256.Sum256([]byte(o.setting.Guest + o.setting.Last))
	k := m.served.migrating
	body, err := json.Marshal(map[string]any{
		"apiVersion": k.GroupVersion().String(), "kind": k.Kind,
		"metadata": map[string]any{"name": "k8splugin-migrate-" + hex.EncodeToString(sum[:10])},
		"spec":     map[string]any{"vmiName": m.object.target.ref.Name},
	})
	return func() *rest.Request {
		r := m.object.client.request(http.MethodPost, m.targetOf(k, "")).SetHeader("Content-Type", "application/json").Body(body).Param("fieldManager", manager(o.object.owner))
		if o.dry {
			r.Param("dryRun", "All")
		}
		return r
	}, err
}

// adopt makes a migration an object of the owner, so that it can be watched, and of the
// machine's instance, so that it is deleted with that.
func (o fieldSetter) adopt(ctx context.Context, m machine, u *unstructured.Unstructured) (nf.Change, error) {
	t := m.targetOf(m.served.migrating, u.GetName())
	label, value := o.object.owner.Label()
	for range attempts {
		was, found, err := m.object.client.meta(ctx, t)
		if err == nil && !found {
			return nf.Change{}, m.refuse(nf.Failed, nf.Migrate, "was not migrated: another client has deleted VirtualMachineInstanceMigration "+u.GetName())
		}
		if err != nil {
			return nf.Change{}, err
		}
		change := changeOf(t, was, nf.Created)
		if was.Labels[label] == value {
			return change, nil
		}
		guest := m.guestTarget().ref
		_, err = m.object.client.edit(ctx, t, was, map[string]any{
			"labels": map[string]any{label: value},
			"ownerReferences": append(was.OwnerReferences, metav1.OwnerReference{
				APIVersion: guest.APIVersion(), Kind: guest.Kind, Name: guest.Name, UID: m.guest.GetUID(),
			}),
		})
		if !apierrors.IsConflict(err) {
			return change, err
		}
	}
	return nf.Change{}, nf.E(nf.Conflict, "migrate", m.object.target.ref.String(), errors.New("its VirtualMachineInstanceMigration changes all the time"))
}
