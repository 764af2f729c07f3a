package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// routeRule defines the identities that may make a request.
type routeRule struct {
	of   accesstest.Subject // what the request is about
	see  nf.Permission      // without it the object does not exist; empty: there is nothing to see yet
	need nf.Permission      // without it the request is forbidden; empty: to see is enough

	list  bool // it lists what the identity may see
	open  bool // every identity may make it
	taken bool // that an id is taken cannot be hidden
	site  bool // the operation is one of a site
	whole bool // region:write shows all objects of the cluster, which is one for both regions here
	idle  bool // it changes nothing, also for an identity that may make it

	query, body string // with the variables of the object's names
	archive     bool   // the body is a package
}

// scope is where permissions are asked for.
func (r routeRule) scope(s nf.Scope) nf.Scope {
	switch r.of {
	case accesstest.Region:
		return nf.Scope{Region: s.Region}
	case accesstest.Package:
		return nf.Scope{Project: s.Project}
	case accesstest.Service:
		return nf.Scope{}
	case accesstest.Instance, accesstest.New:
	}
	return s
}

// target returns the method and the path of a route with the names of variables.
func (r routeRule) target(route string) (method, path string) {
	method, path, _ = strings.Cut(route, " ")
	if r.site || strings.HasPrefix(path, "/v1/sites/") {
		path = strings.Replace(path, "{operation_id}", "{site_operation}", 1)
	}
	for of, name := range subscriptionNames() {
		if strings.HasPrefix(path, of) {
			path = strings.Replace(path, "subscription_id", name, 1)
		}
	}
	return method, path
}

func (r routeRule) sees(who string, s nf.Scope) bool {
	if r.of == accesstest.New {
		return accesstest.May(who, nf.ReadRegion, nf.Scope{Region: s.Region}) && accesstest.May(who, nf.ReadPackage, nf.Scope{Project: s.Project})
	}
	return r.see == "" || accesstest.May(who, r.see, r.scope(s))
}

func (r routeRule) may(who string, s nf.Scope) bool {
	return r.need == "" || accesstest.May(who, r.need, r.scope(s))
}

// variable matches a name that an object is asked for by. Names of what is part
// of an object, such as the number of a revision, are not hidden by themselves.
var variable = regexp.MustCompile(`{(alarm_id|vnf_instance_id|occurrence_id|subscription_id|subscription_v1|subscription_fm|vim_id|cloud_region_id|csar_id|vnf_id|namespace|operation_id|notification_id|network_id|volume_id|service_id|site_id|site_operation|rb-name|cloud-region|instance|stack)}`)

// hidden returns the names in a request of the objects that an identity may not see.
func (r routeRule) hidden(who, path string, s nf.Scope) []string {
	var names []string
	for _, m := range variable.FindAllStringSubmatch(path+r.query+r.body, -1) {
		if name := m[1]; !slices.Contains(names, name) && !r.shows(who, name, s) {
			names = append(names, name)
		}
	}
	return names
}

// shows reports whether an identity may see an object by its name, though not all
// that a new instance is made of.
func (r routeRule) shows(who, name string, s nf.Scope) bool {
	switch {
	case r.of != accesstest.New:
		return false
	case name == "csar_id" || name == "rb-name":
		return accesstest.May(who, nf.ReadPackage, nf.Scope{Project: s.Project})
	}
	return accesstest.May(who, nf.ReadRegion, nf.Scope{Region: s.Region})
}

// routeAccess lists the identities that may make the requests of each route.
func routeAccess() map[string][]routeRule {
	region := func(need nf.Permission, body string) routeRule {
		return routeRule{of: accesstest.Region, see: nf.ReadRegion, need: need, body: body}
	}
	pkg := func(need nf.Permission) routeRule {
		return routeRule{of: accesstest.Package, see: nf.ReadPackage, need: need}
	}
	instance := func(need nf.Permission, body string) routeRule {
		return routeRule{of: accesstest.Instance, see: nf.ReadInstance, need: need, body: body}
	}
	volume := func(need nf.Permission, body string) routeRule {
		return routeRule{of: accesstest.Instance, see: nf.ReadVolume, need: need, body: body}
	}
	network := func(need nf.Permission, body string) routeRule {
		return routeRule{of: accesstest.Instance, see: nf.ReadNetwork, need: need, body: body}
	}
	made := func(of accesstest.Subject, need nf.Permission, body string) routeRule {
		return routeRule{of: of, need: need, body: body}
	}
	with := func(r routeRule, query string) routeRule {
		r.query = query
		return r
	}
	ofSite := func(need nf.Permission) routeRule {
		return routeRule{of: accesstest.Region, see: nf.ReadRegion, need: need, site: true}
	}
	inUse := func(r routeRule) routeRule { // instances use it, so that it is refused
		r.idle = true
		return r
	}
	list, service := routeRule{list: true}, routeRule{of: accesstest.Service, need: nf.AdministerStore}
	upload, replace := made(accesstest.Package, nf.WritePackage, ""), pkg(nf.WritePackage)
	change := pkg(nf.WritePackage)
	change.body = `{"enabled": true}`
	upload.archive, upload.query, replace.archive, replace.taken = true, "?project={project}", true, true
	const create = `{"cloud_region_id": "{cloud_region_id}", "csar_id": "{csar_id}", "project": "{project}"}`
	const adopt = `{"cloud_region_id": "{cloud_region_id}", "csar_id": "{csar_id}", "project": "{project}", "release": "r"}`
	const siteBody = `{"site_id": "more", "cloud_region_id": "{cloud_region_id}", "driver": "script", "credential": {"password": "x"}, "script": {"content": "#!/bin/sh"},
		"hosts": [{"name": "n1", "address": "127.0.0.1", "user": "u", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPHz9pNCHHjPLZMw4oHGnF3ZKP2Sd9AjgPV0QyTxQBH", "role": "control_plane"}]}`
	const volumeBody = `{"name": "more-{cloud_region_id}", "cloud_region_id": "{cloud_region_id}", "project": "{project}", "size": "1Gi", "retention": "delete", "source": {"nfs": {"server": "10.0.0.1", "path": "/more"}}}`
	const machineBody = `{"workloads": ["VirtualMachine/none"]}`
	const networkBody = `{"name": "more", "cloud_region_id": "{cloud_region_id}", "project": "{project}", "driver": "multus", "spec": {"existing": {"namespace": "default", "name": "uplink"}}}`
	const serviceBody = `{"service_id": "more", "project": "{project}", "members": [{"name": "one", "cloud_region_id": "{cloud_region_id}", "csar_id": "{csar_id}"}]}`
	letter := instance(nf.ChangeInstance, "")
	out := map[string][]routeRule{
		"POST /v1/cloud_regions":                               {made(accesstest.Region, nf.WriteRegion, `{"cloud_region_id": "{cloud_region_id}", "kubeconfig": "e30="}`)},
		"GET /v1/cloud_regions":                                {list},
		"GET /v1/cloud_regions/{cloud_region_id}":              {region("", "")},
		"PATCH /v1/cloud_regions/{cloud_region_id}":            {region(nf.WriteRegion, `{"description": "changed"}`)},
		"GET /v1/cloud_regions/{cloud_region_id}/capabilities": {region("", "")},
		"DELETE /v1/cloud_regions/{cloud_region_id}":           {inUse(region(nf.WriteRegion, ""))},

		"POST /v1/packages":                  {upload, made(accesstest.Package, nf.WritePackage, `{"project": "{project}"}`)},
		"GET /v1/packages":                   {list},
		"PUT /v1/packages/{csar_id}":         {replace},
		"GET /v1/packages/{csar_id}":         {pkg("")},
		"PATCH /v1/packages/{csar_id}":       {change},
		"DELETE /v1/packages/{csar_id}":      {inUse(pkg(nf.WritePackage))},
		"GET /v1/packages/{csar_id}/content": {pkg("")},

		"POST /v1/vnf_instances":  {made(accesstest.New, nf.CreateInstance, create), with(made(accesstest.New, nf.ReadInstance, create), "?dry_run=true")},
		"POST /v1/vnf_instances/": {made(accesstest.New, nf.CreateInstance, create)},
		"GET /v1/vnf_instances":   {list, with(list, "?cloud_region_id={cloud_region_id}&project={project}")},
		"POST /v1/vnf_instances/adopt": {
			made(accesstest.New, nf.CreateInstance, adopt), with(made(accesstest.New, nf.CreateInstance, adopt), "?dry_run=true"),
		},
		"GET /v1/vnf_instances/{vnf_id}": {instance("", "")},
		"PATCH /v1/vnf_instances/{vnf_id}": {
			instance(nf.ChangeInstance, `{"vnf_instance_description": "changed"}`), with(instance("", `{"vnf_instance_description": "changed"}`), "?dry_run=true"),
		},
		"DELETE /v1/vnf_instances/{vnf_id}":                 {instance(nf.RemoveInstance, ""), with(instance(nf.RemoveInstance, ""), "?orphan=true"), with(instance("", ""), "?dry_run=true")},
		"GET /v1/vnf_instances/{vnf_id}/revisions":          {instance("", "")},
		"GET /v1/vnf_instances/{vnf_id}/revisions/{number}": {instance("", "")},
		"POST /v1/vnf_instances/{vnf_id}/rollback": {
			instance(nf.ChangeInstance, `{"revision": 1}`), with(instance("", `{"revision": 1}`), "?dry_run=true"),
		},
		"PUT /v1/vnf_instances/{vnf_id}/amendments/{amendment}":    {instance(nf.ChangeInstance, `{"csar_id": "pkg-a"}`)},
		"DELETE /v1/vnf_instances/{vnf_id}/amendments/{amendment}": {instance(nf.ChangeInstance, "")},
		"POST /v1/vnf_instances/{vnf_id}/tests":                    {instance(nf.ChangeInstance, ""), with(instance("", ""), "?dry_run=true")},
		"POST /v1/vnf_instances/{vnf_id}/scale": {
			instance(nf.ChangeInstance, `{"workloads": [{"workload": "Deployment/none", "replicas": 2}]}`), with(instance("", `{"workloads": [{"workload": "Deployment/none", "replicas": 2}]}`), "?dry_run=true"),
		},
		"POST /v1/vnf_instances/{vnf_id}/heal": {
			instance(nf.ChangeInstance, `{"pods": ["none"]}`), with(instance("", `{"pods": ["none"]}`), "?dry_run=true"),
		},
		"POST /v1/vnf_instances/{vnf_id}/restart": {
			instance(nf.ChangeInstance, ""), with(instance("", ""), "?dry_run=true"),
		},
		"POST /v1/vnf_instances/{vnf_id}/start": {
			instance(nf.ChangeInstance, machineBody), with(instance("", machineBody), "?dry_run=true"),
		},
		"POST /v1/vnf_instances/{vnf_id}/stop": {
			instance(nf.ChangeInstance, machineBody), with(instance("", machineBody), "?dry_run=true"),
		},
		"POST /v1/vnf_instances/{vnf_id}/migrate": {
			instance(nf.ChangeInstance, machineBody), with(instance("", machineBody), "?dry_run=true"),
		},
		"GET /v1/vnf_instances/{cloud_region_id}/{namespace}":             {instance("", "")},
		"GET /v1/vnf_instances/{cloud_region_id}/{namespace}/{vnf_id}":    {instance("", "")},
		"DELETE /v1/vnf_instances/{cloud_region_id}/{namespace}/{vnf_id}": {instance(nf.RemoveInstance, "")},
		"GET /v1/operations":                                   {list, with(list, "?vnf_id={vnf_id}"), with(list, "?subject=vnf_instance"), with(list, "?subject=site"), with(list, "?subject=site/{site_id}")},
		"GET /v1/operations/{operation_id}":                    {instance("", ""), ofSite("")},
		"GET /v1/operations/{operation_id}/events":             {instance("", ""), ofSite("")},
		"POST /v1/operations/{operation_id}/cancel":            {instance(nf.ChangeInstance, ""), ofSite(nf.WriteRegion)},
		"POST /v1/operations/{operation_id}/retry":             {instance(nf.ChangeInstance, ""), with(instance("", ""), "?dry_run=true"), ofSite("")},
		"POST /v1/operations/{operation_id}/undo":              {instance(nf.ChangeInstance, ""), with(instance("", ""), "?dry_run=true"), ofSite("")},
		"GET /v1/inventory/aai":                                {list},
		"GET /v1/vnf_instances/{vnf_id}/aai":                   {instance("", "")},
		"POST /v1/vnf_instances/{vnf_id}/aai/sync":             {instance(nf.ChangeInstance, "")},
		"GET /v1/notifications/dead":                           {list},
		"POST /v1/notifications/dead/{notification_id}/resend": {letter},
		"DELETE /v1/notifications/dead/{notification_id}":      {letter},
		"POST /v1/volumes":                                     {made(accesstest.Instance, nf.WriteVolume, volumeBody)},
		"GET /v1/volumes":                                      {list},
		"GET /v1/volumes/{volume_id}":                          {volume("", "")},
		"PATCH /v1/volumes/{volume_id}":                        {volume(nf.WriteVolume, `{"description": "changed"}`)},
		"DELETE /v1/volumes/{volume_id}":                       {volume(nf.WriteVolume, "")},
		"POST /v1/networks":                                    {made(accesstest.Instance, nf.WriteNetwork, networkBody)},
		"GET /v1/networks":                                     {list},
		"GET /v1/networks/{network_id}":                        {network("", "")},
		"PATCH /v1/networks/{network_id}":                      {network(nf.WriteNetwork, `{"description": "changed"}`)},
		"DELETE /v1/networks/{network_id}":                     {network(nf.WriteNetwork, "")},

		"POST /v1/services":                   {made(accesstest.New, nf.CreateInstance, serviceBody), with(made(accesstest.New, nf.ReadInstance, serviceBody), "?dry_run=true")},
		"GET /v1/services":                    {list},
		"GET /v1/services/{service_id}":       {instance("", "")},
		"PATCH /v1/services/{service_id}":     {instance(nf.ChangeInstance, `{"description": "changed"}`), with(instance("", `{"description": "changed"}`), "?dry_run=true")},
		"DELETE /v1/services/{service_id}":    {instance(nf.RemoveInstance, ""), with(instance("", ""), "?dry_run=true")},
		"POST /v1/services/{service_id}/undo": {instance(nf.ChangeInstance, "")},

		"POST /v1/sites":                                            {made(accesstest.Region, nf.WriteRegion, siteBody)},
		"GET /v1/sites":                                             {list},
		"GET /v1/sites/{site_id}":                                   {region("", "")},
		"PATCH /v1/sites/{site_id}":                                 {region(nf.WriteRegion, `{"description": "changed"}`)},
		"DELETE /v1/sites/{site_id}":                                {inUse(region(nf.WriteRegion, "")), with(region(nf.WriteRegion, ""), "?cascade=true")},
		"GET /v1/sites/{site_id}/operations":                        {region("", "")},
		"GET /v1/sites/{site_id}/operations/{operation_id}":         {region("", "")},
		"GET /v1/sites/{site_id}/operations/{operation_id}/events":  {region("", "")},
		"POST /v1/sites/{site_id}/operations/{operation_id}/cancel": {region(nf.WriteRegion, "")},
		"GET /v1/audit":                                             {{list: true, open: true}}, // TestWhoMayDoWhat and the guard's tests have what it shows
		"GET /v1/version":                                           {{open: true}},
		"GET /v1/keys":                                              {service},
		"POST /v1/keys/reencrypt":                                   {service},
		"POST /v1/backup":                                           {{of: accesstest.Service, need: nf.AdministerStore, body: `{"recipient": "age1x"}`}},
	}
	maps.Copy(out, onapRouteAccess())
	maps.Copy(out, tackerRouteAccess())
	maps.Copy(out, etsiRouteAccess())
	maps.Copy(out, vnfRouteAccess())
	maps.Copy(out, vnfNotifyRouteAccess())
	return out
}

// tackerRouteAccess is the same of Tacker's routes. A VIM is a region.
func tackerRouteAccess() map[string][]routeRule {
	vim := routeRule{of: accesstest.Region, see: nf.ReadRegion}
	change := func(body string) []routeRule {
		return []routeRule{{of: accesstest.Region, see: nf.ReadRegion, need: nf.WriteRegion, body: body}}
	}
	return map[string][]routeRule{
		"POST /v1.0/vims": {{of: accesstest.Region, need: nf.WriteRegion, body: `{"vim": {"name": "{cloud_region_id}", "type": "kubernetes",
			"auth_url": "https://127.0.0.1:1", "auth_cred": {"bearer_token": "x"}}}`}},
		"GET /v1.0/vims":             {{list: true}, {list: true, query: "?name={cloud_region_id}"}},
		"GET /v1.0/vims/{vim_id}":    {vim},
		"PUT /v1.0/vims/{vim_id}":    change(`{"vim": {"description": "changed"}}`),
		"DELETE /v1.0/vims/{vim_id}": change(""),
	}
}

// onapRouteAccess is the same of ONAP's routes. Bundles belong to the default
// project.
func onapRouteAccess() map[string][]routeRule {
	region := func(need nf.Permission, body string) []routeRule {
		return []routeRule{{of: accesstest.Region, see: nf.ReadRegion, need: need, body: body}}
	}
	pkg := func(need nf.Permission, body string) []routeRule {
		return []routeRule{{of: accesstest.Package, see: nf.ReadPackage, need: need, body: body}}
	}
	instance := func(need nf.Permission, body string) []routeRule {
		return []routeRule{{of: accesstest.Instance, see: nf.ReadInstance, need: need, body: body}}
	}
	made := func(of accesstest.Subject, need nf.Permission, body string) []routeRule {
		return []routeRule{{of: of, need: need, body: body}}
	}
	read, write, archived := pkg("", ""), func(body string) []routeRule { return pkg(nf.WritePackage, body) }, pkg(nf.WritePackage, "")
	archived[0].archive = true
	change := func(body string) []routeRule { return instance(nf.ChangeInstance, body) }
	list := func(query string) []routeRule { return []routeRule{{list: true, query: query}} }
	const one, vnf, heat = "/v1/rb/definition/{rb-name}/{rb-version}", "/v1/instance/{instance}", "/{cloud-owner}/{cloud-region}/infra_workload"
	const request = `{"rb-name": "{rb-name}", "rb-version": "1", "profile-name": "{profile-name}", "cloud-region": "{cloud-region}", "release-name": "new"}`
	const stack = `{"generic-vnf-id": "g", "vf-module-id": "m", "vf-module-model-invariant-id": "{rb-name}", "vf-module-model-version-id": "v",
		"vf-module-model-customization-id": "1", "template_data": {"stack_name": "new"},
		"user_directives": {"attributes": [{"attribute_name": "k8s-rb-profile-name", "attribute_value": "{profile-name}"}]}}`
	return map[string][]routeRule{
		"POST /{cloud-owner}/{cloud-region}/capacity_check": {{of: accesstest.Region, see: nf.ReadRegion, body: `{"vCPU": 1, "Memory": 1, "Storage": 1}`}},
		"POST /v1/rb/definition":                            made(accesstest.Package, nf.WritePackage, `{"rb-name": "{rb-name}", "rb-version": "2"}`),
		"GET /v1/rb/definition":                             read,
		"GET /v1/rb/definition/{rb-name}":                   read,
		"GET " + one:                                        read,
		"PUT " + one:                                        write(`{"description": "changed"}`),
		"DELETE " + one:                                     write(""),
		"POST " + one + "/content":                          archived,

		"POST " + one + "/profile":                        write(`{"profile-name": "new"}`),
		"GET " + one + "/profile":                         read,
		"GET " + one + "/profile/{profile-name}":          read,
		"PUT " + one + "/profile/{profile-name}":          write(`{"namespace": "changed"}`),
		"DELETE " + one + "/profile/{profile-name}":       write(""),
		"POST " + one + "/profile/{profile-name}/content": archived,

		"POST " + one + "/config-template":                         write(`{"template-name": "new"}`),
		"GET " + one + "/config-template":                          read,
		"GET " + one + "/config-template/{template-name}":          read,
		"PUT " + one + "/config-template/{template-name}":          write(`{"template-name": "{template-name}", "description": "changed"}`),
		"DELETE " + one + "/config-template/{template-name}":       write(""),
		"POST " + one + "/config-template/{template-name}/content": archived,

		"POST /v1/connectivity-info":                  made(accesstest.Region, nf.WriteRegion, `{"cloud-region": "{cloud-region}", "cloud-owner": "o", "kubeconfig": "e30="}`),
		"GET /v1/connectivity-info/{cloud-region}":    region("", ""),
		"DELETE /v1/connectivity-info/{cloud-region}": region(nf.WriteRegion, ""),

		"POST /v1/instance":                             made(accesstest.New, nf.CreateInstance, request),
		"GET /v1/instance":                              append(list(""), list("?rb-name={rb-name}&profile-name={profile-name}")...),
		"GET " + vnf:                                    append(instance("", ""), routeRule{of: accesstest.Instance, see: nf.ReadInstance, query: "?full=true"}),
		"DELETE " + vnf:                                 instance(nf.RemoveInstance, ""),
		"POST " + vnf + "/upgrade":                      change(request),
		"GET " + vnf + "/status":                        instance("", ""),
		"GET " + vnf + "/query":                         {{of: accesstest.Instance, see: nf.ReadInstance, query: "?ApiVersion=v1&Kind=ConfigMap"}},
		"GET /v1/query":                                 {{of: accesstest.Region, see: nf.ReadRegion, whole: true, query: "?CloudRegion={cloud-region}&ApiVersion=v1&Kind=ConfigMap"}},
		"POST " + vnf + "/config":                       change(`{"config-name": "new", "template-name": "ssh"}`),
		"GET " + vnf + "/config":                        instance("", ""),
		"GET /v1/healthcheck":                           {{open: true}},
		"POST /{cloud-owner}/{cloud-region}/registry":   region(nf.WriteRegion, "{}"),
		"GET /{cloud-owner}/{cloud-region}/registry":    region("", ""),
		"DELETE /{cloud-owner}/{cloud-region}/registry": region(nf.WriteRegion, ""),

		"POST " + heat:                   made(accesstest.New, nf.CreateInstance, stack),
		"GET " + heat:                    list("?name={stack}"),
		"GET " + heat + "/{instance}":    instance("", ""),
		"POST " + heat + "/{instance}":   change(""),
		"DELETE " + heat + "/{instance}": instance(nf.RemoveInstance, ""),

		"GET " + vnf + "/config/{config}":                   instance("", ""),
		"PUT " + vnf + "/config/{config}":                   change(`{"values": {"n": 1}}`),
		"DELETE " + vnf + "/config/{config}":                change(""),
		"POST " + vnf + "/config/{config}/delete":           change(""),
		"POST " + vnf + "/config/{config}/rollback":         change(`{"config-version": "1"}`),
		"POST " + vnf + "/config/{config}/tagit":            change(`{"tag-name": "new"}`),
		"GET " + vnf + "/config/{config}/tag":               instance("", ""),
		"GET " + vnf + "/config/{config}/tag/{tag}":         instance("", ""),
		"GET " + vnf + "/config/{config}/version":           instance("", ""),
		"GET " + vnf + "/config/{config}/version/{version}": instance("", ""),

		"POST " + vnf + "/healthcheck":                 change(""),
		"GET " + vnf + "/healthcheck":                  instance("", ""),
		"GET " + vnf + "/healthcheck/{healthcheck}":    instance("", ""),
		"DELETE " + vnf + "/healthcheck/{healthcheck}": change(""),

		"POST " + vnf + "/status/subscription":                  change(`{"name": "new", "callback-url": "http://203.0.113.1/"}`),
		"GET " + vnf + "/status/subscription":                   instance("", ""),
		"GET " + vnf + "/status/subscription/{subscription}":    instance("", ""),
		"PUT " + vnf + "/status/subscription/{subscription}":    change(`{"callback-url": "http://203.0.113.2/"}`),
		"DELETE " + vnf + "/status/subscription/{subscription}": change(""),
	}
}

// etsiRouteAccess is the same of ETSI's routes. The packages of the test are not CSARs,
// which only those who may see them are told.
func etsiRouteAccess() map[string][]routeRule {
	pkg := func(need nf.Permission, body string) []routeRule {
		return []routeRule{{of: accesstest.Package, see: nf.ReadPackage, need: need, body: body}}
	}
	const all, one = "/vnfpkgm/v1/vnf_packages", "/vnfpkgm/v1/vnf_packages/{csar_id}"
	upload := pkg(nf.WritePackage, "")
	upload[0].archive = true
	return map[string][]routeRule{
		"POST " + all: {{of: accesstest.Package, need: nf.WritePackage, query: "?project={project}", body: `{"userDefinedData": {"a": "b"}}`}},
		"GET " + all:  {{list: true}},
		"GET " + one:  pkg("", ""), "PATCH " + one: pkg(nf.WritePackage, `{"operationalState": "DISABLED"}`), "DELETE " + one: pkg(nf.WritePackage, ""),
		"PUT " + one + "/package_content": upload, "GET " + one + "/package_content": pkg("", ""),
		"POST " + one + "/package_content/upload_from_uri": pkg(nf.WritePackage, `{"addressInformation": "https://files.example.com/a.csar"}`),
		"GET " + one + "/vnfd":                             pkg("", ""),
		"GET " + one + "/artifacts/{artifact_path}":        pkg("", ""),
	}
}
