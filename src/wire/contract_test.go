package wire_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// document is the type of a schema. Absent names the type's fields that the
// schema does not have.
type document struct {
	of     any
	absent []string
}

// documents returns the types of the schemas that no other schema refers to.
func documents() map[string]document {
	hosts := func(field string) []string { return []string{field + ".machine_id", field + ".state"} }
	return map[string]document{
		"CloudRegionCreate":   {of: wire.RegionCreate{}},
		"CloudRegionPatch":    {of: wire.RegionPatch{}},
		"ParentPatch":         {of: wire.ParentPatch{}},
		"PackageCreate":       {of: wire.PackageCreate{}},
		"PackagePatch":        {of: wire.PackageEdit{}},
		"VnfInstanceCreate":   {wire.InstanceCreate{}, []string{"confirm"}},
		"VnfInstanceAdopt":    {wire.InstanceAdopt{}, []string{"confirm", "on_failure", "validate", "wait"}},
		"VnfInstancePatch":    {of: wire.InstancePatch{}},
		"AmendmentPut":        {of: wire.AmendmentPut{}},
		"TestRun":             {wire.Execution{}, []string{"confirm", "on_failure", "validate", "wait"}},
		"Rollback":            {of: wire.Rollback{}},
		"Scale":               {wire.Scale{}, []string{"confirm", "validate"}},
		"Heal":                {wire.Heal{}, []string{"confirm", "on_failure", "validate"}},
		"Restart":             {wire.Restart{}, []string{"confirm", "validate"}},
		"Machines":            {wire.Machines{}, []string{"confirm", "validate"}},
		"Migrate":             {wire.Machines{}, []string{"confirm", "on_failure", "validate"}},
		"OperationRetry":      {of: wire.Execution{}},
		"OperationUndo":       {wire.Execution{}, []string{"on_failure", "wait"}},
		"BackupRequest":       {of: wire.BackupRequest{}},
		"SiteCreate":          {wire.SiteCreate{}, hosts("hosts")},
		"SitePatch":           {wire.SitePatch{}, hosts("add_hosts")},
		"NetworkCreate":       {of: wire.NetworkCreate{}},
		"ServiceCreate":       {of: wire.ServiceCreate{}},
		"ServicePatch":        {of: wire.ServicePatch{}},
		"ServiceUndo":         {of: wire.ServiceUndo{}},
		"ServiceMemberCreate": {of: wire.ServiceMemberAdd{}},
		"NetworkPatch":        {of: wire.NetworkEdit{}},
		"VolumeCreate":        {of: wire.VolumeCreate{}},
		"VolumePatch":         {of: wire.VolumeEdit{}},

		"CloudRegion":        {of: wire.Region{}},
		"RegionCapabilities": {of: wire.RegionCapabilities{}},
		"Package":            {of: wire.Package{}},
		"VnfInstance":        {of: wire.Instance{}},
		"VnfInstanceSummary": {of: wire.InstanceSummary{}},
		"Revision":           {of: wire.Revision{}},
		"Preview":            {of: wire.Preview{}},
		"Operation":          {of: wire.Operation{}},
		"Keys":               {of: wire.Keys{}},
		"Version":            {of: wire.Version{}},
		"DeadLetter":         {of: wire.DeadLetter{}},
		"Listing":            {of: wire.Listing{}},
		"RejectedEntry":      {of: wire.RejectedEntry{}},
		"Site":               {of: wire.Site{}},
		"SiteOperation":      {of: wire.SiteOperation{}},
		"SiteEvent":          {of: wire.SubjectEvent{}},
		"Network":            {of: wire.Network{}},
		"Service":            {of: wire.Service{}},
		"ServiceNetwork":     {of: wire.ServiceNetwork{}},
		"ServiceMember":      {of: wire.ServiceMember{}},
		"ServicePreview":     {of: wire.ServicePreview{}},
		"MemberPreview":      {of: wire.MemberPreview{}},
		"ServiceOperation":   {of: wire.ServiceOperation{}},
		"VnfOperation":       {of: wire.VNFOperation{}},
		"SharedPreview":      {of: wire.SharedPreview{}},
		"NetworkOperation":   {of: wire.NetworkOperation{}},
		"Volume":             {of: wire.Volume{}},
		"VolumeOperation":    {of: wire.VolumeOperation{}},
		"AuditEntry":         {of: wire.AuditEntry{}},
		"Problem":            {of: wire.Problem{}},
	}
}

// TestDocumentsAreTheContract compares the types with the schemas of
// swagger.yaml: the fields of a type are the properties of its schema, and each
// schema of the native API has a type.
func TestDocumentsAreTheContract(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(k8splugin.Swagger)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[*openapi3.Schema]bool{}
	for name, d := range documents() {
		schema := doc.Components.Schemas[name]
		if schema == nil {
			t.Errorf("swagger.yaml has no schema %s", name)
			continue
		}
		want, have := properties(schema.Value, "", seen), fields(reflect.TypeOf(d.of), "")
		want = append(want, d.absent...)
		slices.Sort(want)
		slices.Sort(have)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%T does not have the fields of %s (-swagger +type):\n%s", d.of, name, diff)
		}
	}
	for name, schema := range doc.Components.Schemas {
		elsewhere := name == "Readiness" || name == "CloudRegionForm" || // a probe; a form
			slices.ContainsFunc([]string{"Onap", "Tacker", "VnfPkg", "VnfPackage", "Lcm", "Lccn", "Notify", "Fm", "Pm", "CreateThreshold"}, func(api string) bool { return strings.Contains(name, api) })
		if len(schema.Value.Properties) > 0 && !seen[schema.Value] && !elsewhere {
			t.Errorf("the schema %s has no type", name)
		}
	}
}

// properties returns the dotted paths of the properties of a schema and of the
// schemas below it, which it adds to seen.
func properties(schema *openapi3.Schema, prefix string, seen map[*openapi3.Schema]bool) []string {
	seen[schema] = true
	var out []string
	for name, property := range schema.Properties {
		out = append(out, prefix+name)
		out = append(out, properties(property.Value, prefix+name+".", seen)...)
	}
	for _, below := range append(slices.Clone(schema.AllOf), schema.Items, schema.AdditionalProperties.Schema) {
		if below != nil {
			out = append(out, properties(below.Value, prefix, seen)...)
		}
	}
	return out
}

// fields returns the dotted paths of the fields of a type and of the types
// below it, as encoding/json names them.
func fields(of reflect.Type, prefix string) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fields(of.Elem(), prefix)
	case reflect.Struct:
	default:
		return nil
	}
	out := map[string]bool{} // a field hides those of embedded types that have its name
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		out[prefix+name] = true
		for _, below := range fields(field.Type, prefix+name+".") {
			out[below] = true
		}
	}
	return slices.Collect(maps.Keys(out))
}
