package sol003

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Create stores a new VNF, which is not instantiated. The VNF's descriptor id selects its
// package. It returns nf.Unsupported if there is no onboarded and enabled package of the
// project with it. Repeating a request (v.Request) returns the VNF that it created, as it is
// now, or nf.Conflict if the request differs.
func (m *Manager) Create(ctx context.Context, v nf.VNF) (nf.VNF, error) {
	if err := checkTexts("create", "VNF "+v.Name, v); err != nil {
		return nf.VNF{}, err
	}
	now := m.now()
	v = nf.VNF{
		ID: vnfID(v.Request, now), Request: v.Request, Project: nf.ProjectOf(v.Project), Name: v.Name, Description: v.Description, VNFD: v.VNFD, Metadata: v.Metadata,
		Created: now, Updated: now,
	}
	for attempt := 0; ; attempt++ {
		if made, repeated, err := repeated(ctx, m.vnfs, v); repeated || err != nil {
			return made, err
		}
		ops, err := m.creation(ctx, &v)
		if err == nil {
			_, err = store.Write(ctx, m.cfg.KV, ops)
		}
		if err == nil {
			m.noticed.Send()
			return v, nil
		}
		if kind := nf.KindOf(err); kind != nf.Conflict && (kind != nf.Exists || v.Request.Key == "") {
			return nf.VNF{}, err
		}
		if err := store.Pause(ctx, attempt); err != nil { // the package has changed, or the same request was faster
			return nf.VNF{}, err
		}
	}
}

// vnfID returns the id of a new VNF. It is the same for each repetition of a request with a
// key.
func vnfID(k nf.RequestKey, now time.Time) string {
	if k.Key == "" {
		return newID(now)
	}
	return nf.UUIDOf("k8splugin.io/vnf/" + k.Client + "\x00" + k.Key)
}

// repeated returns the VNF that an earlier request with the key of v has created.
func repeated(ctx context.Context, vnfs store.Table[nf.VNF], v nf.VNF) (made nf.VNF, found bool, err error) {
	if v.Request.Key == "" {
		return made, false, nil
	}
	made, err = vnfs.Get(ctx, v.ID)
	if err != nil {
		return nf.VNF{}, false, nf.IgnoreNotFound(err)
	}
	_, err = v.Request.Repeats(made.Request, "create", "VNF "+v.ID)
	return made, true, err
}

// creation returns the ops that store a VNF: its hold on the package, the notice, and the
// VNF.
func (m *Manager) creation(ctx context.Context, v *nf.VNF) ([]store.Op, error) {
	p, err := m.resolve.packageOf(ctx, v.Project, v.VNFD.ID)
	if err != nil {
		return nil, err
	}
	use(v, p)
	held, err := m.cfg.Packages.HoldOps(ctx, holding(*v, p.ID))
	if nf.KindOf(err) == nf.NotFound && err != nil { // it was deleted in the meantime
		return nil, unusable(v.VNFD.ID)
	}
	if err != nil {
		return nil, err
	}
	notice, err := m.notices.InsertOp(noticeID(v.Created, v.ID, 0, "created"), nf.Notice{
		ID: noticeID(v.Created, v.ID, 0, "created"), Kind: nf.NoticeCreation, Time: v.Created, VNF: shown(*v),
	})
	if err != nil {
		return nil, err
	}
	inserted, err := m.vnfs.InsertOp(v.ID, *v)
	return append(held, notice, inserted), err
}

// use makes a package that of a VNF.
func use(v *nf.VNF, p nf.Package) {
	v.Package = p.ID
	v.VNFD = nf.VNFD{ID: p.VNFD.ID, Provider: p.VNFD.Provider, Product: p.VNFD.Product, SoftwareVersion: p.VNFD.SoftwareVersion, Version: p.VNFD.Version}
}

// packageOf is Manager.PackageOf.
func (rs resolver) packageOf(ctx context.Context, project, vnfd string) (nf.Package, error) {
	var found nf.Package
	for p, err := range rs.cfg.Packages.PackagesFrom(ctx, nf.Cursor{Where: []nf.Attribute{{Name: nf.AttributeProject, Value: nf.ProjectOf(project)}}}) {
		if err != nil {
			return nf.Package{}, err
		}
		usable := p.State() == nf.PackageOnboarded && !p.Disabled && p.Removing == ""
		if usable && p.VNFD != nil && p.VNFD.ID == vnfd && nf.ProjectOf(p.Project) == nf.ProjectOf(project) && (found.ID == "" || p.Created.After(found.Created)) {
			found = p
		}
	}
	if found.ID == "" {
		return found, unusable(vnfd)
	}
	return found, nil
}

func unusable(vnfd string) error {
	return nf.E(nf.Unsupported, "use", "the VNF descriptor "+strconv.Quote(nf.Clip(vnfd, 200)), errors.New("no onboarded and enabled package of the project has it"))
}

// checkTexts checks the texts of a VNF that a client chooses.
func checkTexts(verb, subject string, v nf.VNF) error {
	faults := nf.CheckText("vnfInstanceName", v.Name)
	faults = append(faults, nf.CheckText("vnfInstanceDescription", v.Description)...)
	for field, values := range map[string]map[string]any{"metadata": v.Metadata, "extensions": v.Extensions, "vnfConfigurableProperties": v.Configurable} {
		faults = append(faults, nf.CheckUserData(field, values)...)
	}
	if len(faults) == 0 {
		return nil
	}
	slices.SortFunc(faults, func(a, b nf.Violation) int { return strings.Compare(a.Field, b.Field) })
	return nf.E(nf.Invalid, verb, subject, faults)
}

// Delete deletes a VNF that is not instantiated. It returns nf.Conflict while it is
// instantiated, and while it has an occurrence that is not in a final state. Its
// occurrences are kept for the retention.
func (m *Manager) Delete(ctx context.Context, id string) error {
	for attempt := 0; ; attempt++ {
		ops, err := m.deletion(ctx, id)
		if err == nil {
			_, err = store.Write(ctx, m.cfg.KV, ops)
		}
		if err == nil || nf.KindOf(err) != nf.Conflict && nf.KindOf(err) != nf.Exists || !changed(err) {
			m.noticed.Send()
			return err
		}
		if err := store.Pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// changed reports whether an error says that a record has changed since it was read.
func changed(err error) bool { return errors.As(err, new(*store.WriteError)) }

// deletion returns the ops that delete a VNF: the notice, the VNF, and its hold on the
// package.
func (m *Manager) deletion(ctx context.Context, id string) ([]store.Op, error) {
	v, read, err := m.vnf(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := m.idle(ctx, "delete", v); err != nil {
		return nil, err
	}
	if v.Instantiated != nil {
		return nil, nf.E(nf.Conflict, "delete", "VNF "+id, errors.New("it is instantiated; terminate it first"))
	}
	ops, err := noticeOps(ctx, m.notices, nf.Notice{ID: noticeID(v.Updated, v.ID, 2, "deleted"), Kind: nf.NoticeDeletion, Time: m.now(), VNF: shown(v)})
	if err != nil {
		return nil, err
	}
	deleted, err := m.vnfs.DeleteOp(id, read)
	if err != nil {
		return nil, err
	}
	released, err := m.cfg.Packages.ReleaseOps(ctx, holding(v, v.Package))
	return slices.Concat(ops, []store.Op{deleted}, released), err
}

// idle returns nf.Busy while an attempt at an occurrence of a VNF runs, or another
// operation on its instance, and nf.Conflict while an occurrence has failed temporarily.
func (m *Manager) idle(ctx context.Context, verb string, v nf.VNF) error {
	lock := lockOf(&v)
	if err := lock.Free(verb); err != nil {
		return err
	}
	if v.Occurrence == "" {
		return nil
	}
	o, err := m.occurrences.Get(ctx, v.Occurrence)
	if err != nil {
		return nf.IgnoreNotFound(err)
	}
	if o.State.Final() { // the process crashed before the VNF no longer named it
		return nil
	}
	return nf.E(nf.Conflict, verb, "VNF "+v.ID, fmt.Errorf("occurrence %s is %s; retry it, roll it back or make it fail first", o.ID, o.State))
}
