package aai

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const regionsPath = "/cloud-infrastructure/cloud-regions"

// CloudRegion is a cloud region as A&AI has it, with the systems that ESR has registered
// for it.
type CloudRegion struct {
	Owner   string
	ID      string
	Type    string    // cloud-type
	Extra   nf.Secret // cloud-extra-info; may contain credentials
	Version string    // resource-version
	Systems []System  // sorted by id
}

// System is an esr-system-info of a cloud region.
type System struct {
	ID         string
	Type       string
	SystemType string
	Status     string // system-status
	URL        string // service-url
	User       string
	Password   nf.Secret
	CA         string // ssl-cacert
	Insecure   bool   // ssl-insecure
	Namespace  string // default-tenant
	RemotePath string
	Version    string // resource-version
}

// CloudRegion returns a cloud region with its systems. It returns nf.NotFound if A&AI
// does not have it, and nf.Unreachable if it cannot be read. Errors quote no attribute.
func (c *Client) CloudRegion(ctx context.Context, owner, id string) (CloudRegion, error) {
	subject := fmt.Sprintf("cloud region %s/%s of A&AI", owner, id)
	path := join(regionsPath, "cloud-region", owner, id)
	found, err := c.read(ctx, path)
	switch {
	case err != nil:
		return CloudRegion{}, nf.E(nf.Unreachable, "read", subject, err)
	case found == nil:
		return CloudRegion{}, nf.E(nf.NotFound, "read", subject, nil)
	}
	out := regionOf(found)
	if out.Owner != owner || out.ID != id {
		return CloudRegion{}, nf.E(nf.Unreachable, "read", subject, errors.New("the response of A&AI is another object"))
	}
	list, err := c.read(ctx, path+"/esr-system-info-list")
	if err != nil {
		return CloudRegion{}, nf.E(nf.Unreachable, "read", subject, err)
	}
	for _, object := range objects(list, "esr-system-info") {
		out.Systems = append(out.Systems, systemOf(object))
	}
	slices.SortFunc(out.Systems, func(a, b System) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Tenants returns the ids of the tenants of a cloud region. It returns nf.Unreachable if
// they cannot be read.
func (c *Client) Tenants(ctx context.Context, owner, id string) ([]string, error) {
	all, err := c.list(ctx, join(regionsPath, "cloud-region", owner, id)+"/tenants", "tenant", nil)
	if err != nil {
		return nil, nf.E(nf.Unreachable, "list", fmt.Sprintf("tenants of cloud region %s/%s of A&AI", owner, id), err)
	}
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = textOf(t, "tenant-id")
	}
	return out, nil
}

// CloudRegions returns the cloud regions with an id, of all owners; if id is empty, all
// cloud regions. They have no systems. It returns nf.Unreachable if they cannot be read.
func (c *Client) CloudRegions(ctx context.Context, id string) ([]CloudRegion, error) {
	filter := url.Values{}
	if id != "" {
		filter.Set("cloud-region-id", id)
	}
	found, err := c.list(ctx, regionsPath, "cloud-region", filter)
	if err != nil {
		return nil, nf.E(nf.Unreachable, "list", "cloud regions of A&AI", err)
	}
	out := make([]CloudRegion, len(found))
	for i, object := range found {
		out[i] = regionOf(object)
	}
	return out, nil
}

func regionOf(object map[string]any) CloudRegion {
	return CloudRegion{
		Owner: textOf(object, "cloud-owner"), ID: textOf(object, "cloud-region-id"), Type: textOf(object, "cloud-type"),
		Extra: nf.Secret(textOf(object, "cloud-extra-info")), Version: textOf(object, versionName),
	}
}

func systemOf(object map[string]any) System {
	insecure, _ := object["ssl-insecure"].(bool)
	return System{
		ID: textOf(object, "esr-system-info-id"), Type: textOf(object, "type"), SystemType: textOf(object, "system-type"),
		Status: textOf(object, "system-status"), URL: textOf(object, "service-url"), User: textOf(object, "user-name"),
		Password: nf.Secret(textOf(object, "password")), CA: textOf(object, "ssl-cacert"),
		Insecure: insecure || strings.EqualFold(textOf(object, "ssl-insecure"), "true"), Namespace: textOf(object, "default-tenant"),
		RemotePath: textOf(object, "remote-path"), Version: textOf(object, versionName),
	}
}

// textOf returns an attribute that is a string, or an empty one.
func textOf(object map[string]any, name string) string {
	text, _ := object[name].(string)
	return text
}

// objects returns the elements of a collection that are objects.
func objects(collection map[string]any, element string) (out []map[string]any) {
	list, _ := collection[element].([]any)
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}
