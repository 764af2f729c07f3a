package clusterapi

import (
	"context"
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// account is the service account of a region and its rights: those that kud's role
// "region" gives. Its objects are in the order in which they are applied; the Secret
// comes last, because Kubernetes deletes one without a service account.
//
//go:embed account.json
var account []byte

// objects returns the objects of the account.
func objects() ([]*unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(account); err != nil {
		return nil, fmt.Errorf("cannot read the objects of the service account: %w", err)
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

func ownerOf(p nf.Parent) nf.Subject {
	return nf.Subject{Kind: nf.RegionSubject, ID: p.Workload.Region}
}

// access returns the access of the region of a cluster, whose administrator's kubeconfig is
// given.
func (r *Registrar) access(ctx context.Context, held func(context.Context) error, p nf.Parent, kubeconfig nf.Secret) (nf.Access, error) {
	access, err := r.administrator(p, kubeconfig)
	if err != nil || p.Workload.Credentials == nf.SecretCredentials {
		return access, err
	}
	var token nf.Secret
	err = r.cfg.Visit(access, func(w Workload) error {
		all, err := objects()
		if err != nil {
			return err
		}
		for _, batch := range [][]*unstructured.Unstructured{all[:1], all[1 : len(all)-1], all[len(all)-1:]} {
			if err := held(ctx); err != nil {
				return err
			}
			owned(batch, ownerOf(p))
			if _, err := w.Apply(ctx, ownerOf(p), batch); err != nil {
				return err
			}
		}
		secret, err := w.Lookup(ctx, nf.RefOf(all[len(all)-1]))
		if err != nil {
			return err
		}
		token, err = valueOf(secret, "token", p)
		return err
	})
	if err != nil {
		return nf.Access{}, err
	}
	return nf.Access{Server: access.Server, ServerName: access.ServerName, CA: access.CA, Insecure: access.Insecure, Proxy: access.Proxy, Token: token}, nil
}

// administrator returns the access that a kubeconfig describes, at the address that the
// request says.
func (r *Registrar) administrator(p nf.Parent, kubeconfig nf.Secret) (nf.Access, error) {
	access, err := r.cfg.Parse(kubeconfig)
	if err != nil {
		return nf.Access{}, nf.E(nf.Failed, "register", "cloud region "+p.Workload.Region, err)
	}
	access.Kubeconfig = nil // with another address, it is not this access
	if p.Workload.Server != "" {
		access.Server = p.Workload.Server
	}
	return access, nil
}

// owned gives objects the label of their owner.
func owned(all []*unstructured.Unstructured, owner nf.Subject) {
	key, value := owner.Label()
	for _, obj := range all {
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		obj.SetLabels(labels)
	}
}

// removeAccount deletes the account from a cluster that can be used.
func (r *Registrar) removeAccount(ctx context.Context, p nf.Parent) error {
	kubeconfig, err := r.secret(ctx, p)
	if err != nil {
		return err
	}
	access, err := r.administrator(p, kubeconfig)
	if err != nil {
		return err
	}
	return r.cfg.Visit(access, func(w Workload) error {
		all, err := objects()
		if err != nil {
			return err
		}
		refs := make([]nf.Ref, len(all))
		for i, obj := range all {
			refs[len(all)-1-i] = nf.RefOf(obj)
		}
		_, err = w.Delete(ctx, ownerOf(p), refs)
		return err
	})
}
