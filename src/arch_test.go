package src_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	repository = "github.com/multicloud-k8s/k8splugin"
	module     = repository + "/src/"
)

// floor is a package's layer.
type floor struct {
	imports []string // packages of ours that it may import; "*" is all
	reason  string
}

// floors names every package, by its folder under src. A new package is added
// here on purpose, and its reason is read in review.
var floors = map[string]floor{
	"nf":        {nil, "the vocabulary holds whatever the transport or the store"},
	"syntax":    {nil, "why a text cannot be read is said in the same words to every reader"},
	"budget":    {[]string{"nf"}, "all code that reads the files of archives, or holds a plan, reserves memory from a budget"},
	"wire":      {[]string{"nf"}, "the server and the command line share one definition of the documents between them"},
	"readiness": {[]string{"nf", "syntax"}, "rules for custom resources are read where packages are read, and evaluated where regions are watched"},
	"delay":     {nil, "goroutines wait for a time or a signal in one way"},
	"breaker":   {[]string{"nf", "delay"}, "requests to a peer that does not respond are stopped in one way"},
	"reload":    {[]string{"nf"}, "values from files follow their changes in one way, whatever they are"},
	"peer":      {[]string{"nf", "reload"}, "servers of the operator are reached in one way, whatever they serve"},
	"outbound":  {[]string{"nf"}, "the targets of calls that users request are checked in one place, for every protocol"},

	"tosca": {[]string{"nf", "syntax"}, "what a VNF descriptor describes depends on no archive, no store and no cluster"},

	"csar": {[]string{"nf", "tosca"}, "what a CSAR says about itself depends on no archive, no store and no cluster"},

	"store":   {[]string{"nf", "delay"}, "records are kept without knowing what they are for"},
	"render":  {[]string{"nf"}, "what a package means depends on no store, no cluster and no request"},
	"cluster": {[]string{"nf", "outbound", "breaker", "cluster/schema", "delay", "readiness"}, "a cluster is changed as told, whatever for: the engine declares what it needs of it"},

	"store/memory":    {[]string{"nf", "store"}, "a driver knows its contract"},
	"store/etcd":      {[]string{"nf", "store"}, "a driver knows its contract"},
	"store/mongo":     {[]string{"nf", "store"}, "a driver knows its contract"},
	"store/metered":   {[]string{"nf", "store"}, "what a store takes is measured without knowing which it is"},
	"store/cache":     {[]string{"nf", "store"}, "what was read is kept, whichever the database"},
	"store/index":     {[]string{"nf", "store", "delay"}, "records are found by what is known of them, whichever the database"},
	"store/dryrun":    {[]string{"nf", "store"}, "a dry run writes nothing, whichever the database"},
	"store/schema":    {[]string{"nf", "store"}, "what a store holds is known before anything is read from it"},
	"store/seal":      {[]string{"nf", "store", "store/schema"}, "what is stored is secret, whichever the database"},
	"store/kms":       {[]string{"nf", "store/seal"}, "a driver knows its contract"},
	"store/backup":    {[]string{"nf", "store", "store/schema"}, "a store is brought elsewhere, whichever the databases"},
	"store/lease":     {[]string{"nf", "store", "delay"}, "the live replicas are determined in one way, whatever work they share"},
	"store/leader":    {[]string{"nf", "store", "store/lease", "delay"}, "one replica is chosen in one way, whatever it does"},
	"render/manifest": {[]string{"nf", "render", "syntax", "readiness"}, "a driver knows its contract"},

	"render/helm": {[]string{"nf", "render", "syntax"}, "a driver knows its contract"},
	"render/csar": {[]string{"nf", "render", "csar", "tosca"}, "a driver knows its contract, and what a CSAR and its descriptor say about themselves"},

	"network/schema": {[]string{"nf"}, "specifications of networks are checked by tables, whichever the driver"},
	"network/multus": {[]string{"nf", "network/schema"}, "a driver knows its contract"},
	"network/sriov":  {[]string{"nf", "network/schema", "network/multus"}, "its networks are those of multus with another main plugin, or another kind of object"},
	"network/ovn":    {[]string{"nf", "network/schema"}, "a driver knows its contract"},

	"operation":         {[]string{"nf", "store", "store/lease", "delay"}, "operations are shared among replicas without knowing what they do"},
	"outbox":            {[]string{"nf", "outbound", "breaker", "store", "store/lease", "delay"}, "requests are delivered without knowing why they are sent"},
	"istio":             {[]string{"delay"}, "the service's identity in a mesh is kept without knowing which connections use it"},
	"openstack":         {[]string{"nf", "outbound", "delay"}, "virtual machines are made without knowing what runs on them"},
	"nfvo":              {[]string{"nf", "outbound", "delay"}, "grants are asked for without knowing what becomes of an occurrence"},
	"kafka":             {[]string{"nf", "outbound"}, "topics are read and written without knowing what messages mean"},
	"sdc":               {[]string{"nf", "outbound"}, "SDC is read without knowing what its artifacts become"},
	"aai":               {[]string{"nf", "outbound", "breaker"}, "A&AI is compared and written without knowing when something has changed, or where facts come from"},
	"aaisource":         {[]string{"nf", "aai", "aaisync", "delay"}, "what A&AI is to have is known without knowing where records are kept, or how regions are watched"},
	"aaisync":           {[]string{"nf", "aai", "store", "store/leader", "delay"}, "A&AI is kept up to date without knowing what its documents mean, or where facts come from"},
	"lifecycle":         {[]string{"nf", "budget", "store", "operation", "render", "delay"}, "the engine is tested without Kubernetes and without HTTP"},
	"catalog":           {[]string{"nf", "budget", "store", "render"}, "keeping packages and running them are two things that meet in the store"},
	"distribution":      {[]string{"nf", "sdc", "kafka", "store", "delay"}, "SDC's distributions are followed without knowing how definitions are stored"},
	"bundle":            {[]string{"nf", "budget", "store", "render", "syntax"}, "what ONAP calls resource bundles is composed to packages, and kept beside them"},
	"notify":            {[]string{"nf", "outbox", "store", "delay"}, "subscriptions are served without knowing how regions are watched, or how requests are delivered"},
	"sol003/fault":      {[]string{"nf", "store", "store/leader", "delay"}, "alarms are raised without knowing how regions are watched, or who is notified"},
	"sol003/notify":     {[]string{"nf", "wire", "outbound", "outbox", "store", "store/leader", "delay"}, "subscribers of SOL003 are notified without knowing what happens to VNFs, or how requests are delivered"},
	"sol003/hook":       {[]string{"nf", "outbound", "outbox", "site", "sol003/installer"}, "scripts run elsewhere without knowing when, or which VNF they are of"},
	"sol003/installer":  {[]string{"nf", "tosca"}, "clusters are made of hosts without knowing how sites are built, or who keeps the VNFs"},
	"health":            {[]string{"nf", "delay"}, "how instances are is known without knowing how regions are watched, or where records are kept"},
	"drift":             {[]string{"nf", "delay"}, "drift is reported and corrected without knowing how objects are compared, or how regions are watched"},
	"networkservice":    {[]string{"nf", "store", "operation"}, "services order instances without knowing what these consist of"},
	"site":              {[]string{"nf", "store", "store/lease", "operation", "delay"}, "sites are looked after without knowing how hosts are reached or changed"},
	"shared":            {[]string{"nf", "store", "operation", "render", "delay"}, "what instances share is held and removed without knowing what it is, or who uses it"},
	"volume":            {[]string{"nf", "render", "shared"}, "volumes are a kind of shared resources, and know how a region stores and binds them"},
	"network":           {[]string{"nf", "render", "shared"}, "networks are a kind of shared resources, and drivers know what their specs mean"},
	"aairegion":         {[]string{"nf", "aai", "delay"}, "regions of A&AI are imported without knowing who asks for them, or how regions are reached"},
	"clusterapi":        {[]string{"nf", "outbox", "delay"}, "clusters become regions without knowing who asks for them, or how regions are reached"},
	"sol003":            {[]string{"nf", "wire", "store", "operation", "tosca", "delay"}, "VNFs and occurrences are kept without knowing how requests arrive, or how the engine carries them out"},
	"site/shell":        {[]string{"nf", "outbound", "site"}, "hosts are talked to in one place"},
	"site/ansible":      {[]string{"nf", "site", "site/shell"}, "a driver knows its contract"},
	"site/script":       {[]string{"nf", "site", "site/shell"}, "a driver knows its contract"},
	"keystone":          {[]string{"nf"}, "tokens are validated without knowing what they allow"},
	"migration":         {nil, "imports from other programs are reported in one way"},
	"tackerimport":      {[]string{"nf", "migration"}, "Tacker's API is read and written alike, so that this service is written as a client does"},
	"onapstore":         {[]string{"nf"}, "what another program has stored is read without knowing what becomes of it"},
	"onapimport":        {[]string{"nf", "store", "render", "bundle", "migration", "onapstore", "northbound/onap"}, "imported instances are stored as ONAP's API stores its own; the engine and the regions are declared"},
	"declared":          {[]string{"nf", "syntax", "wire"}, "what files declare is known without knowing who applies it, and how"},
	"chartsource":       {[]string{"nf", "outbound"}, "where an archive comes from is forgotten once it is here"},
	"access":            {[]string{"nf", "reload"}, "permissions are checked on the engine's own types, not on those of an API"},
	"audit":             {[]string{"nf", "store"}, "what was asked is kept whatever came of it"},
	"telemetry":         {[]string{"nf"}, "what is seen of the service is told in the vocabulary's words; main joins them to what happens"},
	"northbound":        {[]string{"nf", "syntax", "wire"}, "HTTP is one way to ask; it declares what it calls"},
	"northbound/native": {[]string{"nf", "northbound", "wire"}, "each API has its own view of the engine, and none sees it whole"},
	"northbound/tacker": {[]string{"nf", "northbound"}, "VIMs are another view of regions: what Tacker calls them stays here"},
	"northbound/onap":   {[]string{"nf", "northbound", "bundle", "syntax", "delay"}, "ONAP's nouns are ONAP's API's alone"},

	"northbound/sol013":  {[]string{"nf", "northbound"}, "what ETSI's APIs have in common knows none of their resources"},
	"northbound/vnflcm":  {[]string{"nf", "northbound", "northbound/sol013", "wire"}, "ETSI's nouns are ETSI's API's alone, and what runs an occurrence is declared"},
	"northbound/vnfpkgm": {[]string{"nf", "northbound", "northbound/sol013"}, "ETSI's nouns are ETSI's API's alone, and what a CSAR says is in the vocabulary"},

	"northbound/vnffm":           {[]string{"nf", "northbound", "northbound/sol013", "wire"}, "ETSI's nouns are ETSI's API's alone, and how faults are found is declared"},
	"northbound/vnfsubscription": {[]string{"nf", "northbound", "northbound/sol013"}, "ETSI's nouns are ETSI's API's alone, and how subscribers are notified is declared"},

	"sol003/performance":           {[]string{"nf", "store", "store/leader", "delay"}, "VNFs are measured without knowing how regions are read, or how subscribers are notified"},
	"northbound/sol013/sol013test": {[]string{"northbound", "northbound/northboundtest", "northbound/sol013"}, "one server and one client for the tests of ETSI's APIs"},
	"northbound/vnfpm":             {[]string{"nf", "northbound", "northbound/sol013", "wire"}, "ETSI's nouns are ETSI's API's alone, and how VNFs are measured is declared"},
	"simulator/metricsserver":      {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},

	"heaptest":                      {nil, "memory is measured in one way, whatever holds it"},
	"csar/csartest":                 {nil, "one set of CSARs, for all tests"},
	"access/accesstest":             {[]string{"nf"}, "permissions are tested once, for every API"},
	"operation/operationtest":       {[]string{"nf", "store", "operation"}, "one table of deaths, for the operations of every kind"},
	"store/storetest":               {[]string{"nf", "store"}, "one suite for every store"},
	"store/kms/kmstest":             {[]string{"simulator/kms"}, "one service, for all tests that use its protocol"},
	"store/mongo/mongotest":         {nil, "one test database, for all tests that use its protocol"},
	"render/helm/helmtest":          {[]string{"render"}, "one set of charts, for all tests"},
	"render/rendertest":             {[]string{"nf", "render"}, "one suite for every renderer"},
	"cluster/clustertest/adversary": {nil, "a region that misbehaves does so alone"},
	"cluster/schema":                {[]string{"nf"}, "objects are compared with schemas without asking where these come from"},
	"cluster/clustertest":           {[]string{"nf"}, "looks at a cluster with eyes of its own, not through what it tests"},
	"northbound/northboundtest":     {[]string{"nf", "northbound"}, "one suite for every API"},

	"site/sitetest":           {[]string{"nf"}, "one test host, for every package that connects to it"},
	"telemetry/telemetrytest": {nil, "one test collector, for every package that sends to it"},

	"simulator/script":     {nil, "faults are scripted, and requests kept, in one way for all simulators"},
	"simulator/aai":        {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/istiod":     {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/broker":     {nil, "simulated peers send messages in one way"},
	"simulator/nfvo":       {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/oof":        {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/sdc":        {[]string{"simulator/broker", "simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/so":         {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that it calls"},
	"simulator/onap":       {[]string{"simulator/aai", "simulator/oof", "simulator/script", "simulator/sdc", "simulator/so"}, "the simulators are started around the service in one way, for the program and for tests"},
	"simulator/subscriber": {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/openstack":  {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/kms":        {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},
	"simulator/keystone":   {[]string{"simulator/script"}, "a simulator of a peer knows the peer, not the code that calls it"},

	"cmd/k8splugin":     {[]string{"*"}, "main names the parts and joins them"},
	"cmd/k8splugin/cli": {[]string{"nf", "wire", "declared"}, "the command line is a client like any other: it knows the wire, not the service"},
	"cmd/artifacts":     {nil, "what a site is built from is made without the service"},
	"cmd/chaos":         {[]string{"cmd/sandbox/bare", "cluster/clustertest/adversary", "simulator/aai"}, "what is killed is killed, and looked at, from outside"},
	"cmd/bench":         {[]string{"cmd/sandbox/bare", "simulator/aai"}, "what is measured is measured from outside"},
	"cmd/sandbox/bare":  {nil, "what checks the service looks with other eyes than the service's"},
	"cmd/sandbox":       {nil, "the sandbox serves the tests of everything, so it leans on nothing"},

	"cmd/k8splugin-onap": {[]string{"simulator/onap", "simulator/so"}, "ONAP's components are simulated around the service, which is a program like theirs"},
}

// outside names what lies outside src, and the folders that may import it. Test
// files are free, except for the test kits, which are packages.
var outside = map[string]struct {
	folders []string // with what is below them; "*" is every one
	reason  string
}{
	repository + "/api/client":                 {[]string{"cmd/k8splugin/cli"}, "the command line sends the requests that the contract describes"},
	repository:                                 {[]string{"cmd/k8splugin"}, "main hands out the contract, swagger.yaml, that the root package carries"},
	"github.com/smallstep/pkcs7":               {[]string{"csar"}, "signatures of CSARs are verified in one place"},
	"k8s.io/apiextensions-apiserver":           {[]string{"cluster/schema"}, "custom resources are checked as the API server checks them, with its library"},
	"k8s.io/apiserver":                         {[]string{"cluster/schema"}, "the rules of custom resources are evaluated in one place"},
	"github.com/google/cel-go":                 {[]string{"readiness"}, "readiness rules are expressions of CEL, and evaluated in one place"},
	"k8s.io/kube-openapi":                      {[]string{"cluster/schema"}, "the formats of strings are those of the API server"},
	"k8s.io/api":                               {[]string{"cluster"}, "a request for a token is one of Kubernetes' types, not a copy of it"},
	"k8s.io/client-go/util/jsonpath":           {[]string{"cmd/k8splugin/cli"}, "templates of output are those of kubectl"},
	"k8s.io/client-go":                         {[]string{"cluster"}, "a reader knows where Kubernetes is spoken to"},
	"sigs.k8s.io/structured-merge-diff":        {[]string{"cluster"}, "whose field is whose is read where it is applied"},
	"helm.sh/helm/v4":                          {[]string{"render/helm"}, "charts are read and rendered in one place"},
	"oras.land/oras-go/v2":                     {[]string{"chartsource"}, "registries are asked in one place"},
	"github.com/fluxcd/cli-utils":              {[]string{"cluster"}, "one place judges whether an object is ready"},
	"k8s.io/apimachinery/pkg/labels":           {[]string{"northbound/native", "render", "cluster", "lifecycle"}, "label selectors are those of Kubernetes"},
	"k8s.io/apimachinery/pkg/selection":        {[]string{"northbound/native", "render", "cluster", "lifecycle"}, "and so are their operators"},
	"k8s.io/apimachinery/pkg/util/validation":  {[]string{"cluster", "volume", "store/kms"}, "names are valid by the rules of Kubernetes"},
	"k8s.io/kms":                               {[]string{"store/kms", "simulator/kms"}, "key management services are called in one place, and simulated in another"},
	"k8s.io/apimachinery":                      {[]string{"render", "cluster", "lifecycle", "network", "shared", "volume", "clusterapi"}, "Kubernetes' types stay in the packages that handle objects"},
	"github.com/gophercloud/gophercloud/v2":    {[]string{"openstack"}, "OpenStack is spoken to in one place"},
	"github.com/gorilla/mux":                   {[]string{"northbound"}, "requests are routed in one place"},
	"github.com/getkin/kin-openapi":            {[]string{"northbound"}, "requests are held against the contract where they arrive"},
	"go.etcd.io/etcd":                          {[]string{"store/etcd", "onapstore"}, "a database's SDK is linked from its driver, and from where ONAP's is read"},
	"go.uber.org/zap":                          {[]string{"store/etcd", "onapstore"}, "etcd logs with it"},
	"github.com/FerretDB/FerretDB":             {[]string{"store/mongo/mongotest"}, "the database that tests speak to is started in one place"},
	"go.mongodb.org/mongo-driver/v2":           {[]string{"store/mongo", "onapstore"}, "a database's SDK is linked from its driver, and from where ONAP's is read"},
	"github.com/tink-crypto/tink-go/v2":        {[]string{"store/seal"}, "values are encrypted in one place"},
	"filippo.io/age":                           {[]string{"store/backup", "cmd/k8splugin"}, "backups are encrypted in one place"},
	"github.com/twmb/franz-go":                 {[]string{"kafka", "simulator/broker"}, "Kafka is spoken to in one place, and simulated in another"},
	"github.com/Shopify/toxiproxy/v2":          {[]string{"cmd/chaos"}, "only chaos breaks networks"},
	"github.com/opencontainers":                {[]string{"chartsource"}, "registries are asked in one place"},
	"github.com/Masterminds/semver/v3":         {[]string{"chartsource", "render/helm"}, "versions of charts are compared as Helm does"},
	"github.com/Masterminds/sprig/v3":          {[]string{"render/helm"}, "the functions of charts' templates"},
	"github.com/BurntSushi/toml":               {[]string{"render/helm"}, "the functions of charts' templates"},
	"github.com/santhosh-tekuri/jsonschema/v6": {[]string{"render/helm"}, "a chart may say what its values are to be like"},
	"go.yaml.in/yaml/v3":                       {[]string{"render", "tosca", "access", "chartsource", "declared", "readiness", "openstack", "simulator/openstack", "cmd"}, "YAML with lines and columns, for what people write"},
	"sigs.k8s.io/json":                         {[]string{"store/backup", "cluster"}, "JSON without unknown, repeated or trailing data, as the API server reads it; the events of its watches"},
	"sigs.k8s.io/yaml":                         {[]string{"cmd", "declared", "bundle", "northbound/onap", "render/helm", "render/rendertest"}, "YAML as Kubernetes and Helm read and print it"},
	"github.com/prometheus":                    {[]string{"northbound", "telemetry", "cmd"}, "what is measured is told over HTTP"},
	"go.opentelemetry.io":                      {[]string{"telemetry"}, "traces are made in one place; what is traced knows an interface of its own"},
	"google.golang.org/grpc":                   {[]string{"store/etcd", "store/kms", "istio", "simulator/istiod", "simulator/kms"}, "etcd, istiod and key management services speak it"},
	"istio.io/api":                             {[]string{"istio", "simulator/istiod"}, "certificates are requested in Istio's own messages"},
	"google.golang.org/protobuf":               {[]string{"telemetry/telemetrytest", "store/etcd"}, "traces are sent in it, and etcd stores revisions in it"},
	"github.com/coreos/go-oidc/v3":             {[]string{"access", "cmd/k8splugin/cli"}, "identities are proved in one place, and a user logs in at a provider"},
	"golang.org/x/oauth2":                      {[]string{"cluster", "nfvo", "sol003/notify", "cmd/k8splugin/cli"}, "tokens are fetched where regions, the NFVO and callbacks are reached, and where a user logs in"},
	"github.com/go-jose/go-jose/v4":            {[]string{"access"}, "identities are proved in one place"},
	"github.com/cedar-policy/cedar-go":         {[]string{"access"}, "what one may is decided in one place"},
	"golang.org/x/crypto":                      {[]string{"access", "cmd", "site/shell", "site/ansible", "site/script", "site/sitetest"}, "passwords are compared where identities are proved, and hosts prove theirs by SSH"},
	"github.com/hashicorp/golang-lru/v2":       {[]string{"cluster", "northbound", "access", "keystone", "readiness", "store/cache"}, "a cache with a limit drops the least recently used entry first"},
	"github.com/klauspost/compress":            {[]string{"store/seal"}, "Zstandard with a dictionary compresses small records"},
	"github.com/go-json-experiment/json":       {[]string{"store"}, "records are decoded in a quarter of the time"},
	"golang.org/x/time":                        {[]string{"northbound", "access", "cluster", "outbox", "aai"}, "rates are limited where requests come in and go out, and where a region's answers come in"},
	"github.com/spf13/cobra":                   {[]string{"cmd"}, "the command line has one owner"},
	"github.com/spf13/pflag":                   {[]string{"cmd"}, "the command line has one owner"},
	"github.com/knadh/koanf":                   {[]string{"cmd"}, "configuration has one owner"},
	"golang.org/x/term":                        {[]string{"cmd"}, "only a program knows a terminal"},
	"k8s.io/klog/v2":                           {[]string{"cmd"}, "main decides where logs go"},
	"github.com/go-logr/logr":                  {[]string{"cmd"}, "main decides where logs go"},
	"golang.org/x/text":                        {[]string{"render"}, "two names of files that look alike are one"},
	"golang.org/x/sync":                        {[]string{"*"}, "the function that starts goroutines waits for them"},
	"github.com/google/btree":                  {[]string{"store/memory", "store/index"}, "what is in memory is in order, too"},
	"github.com/google/go-cmp":                 {testKits, "tests tell differences"},
	"github.com/rogpeppe/go-internal":          {testKits, "transcripts and scripts are text"},
}

var (
	testKits = []string{"operation/operationtest", "store/storetest", "render/rendertest", "render/helm/helmtest", "cluster/clustertest", "northbound/northboundtest", "northbound/sol013/sol013test"}

	// bare packages import nothing from outside but the standard library.
	bare = []string{"nf", "cmd/sandbox"}
)

func TestArchitecture(t *testing.T) {
	for _, finding := range check(t, os.DirFS(".")) {
		t.Error(finding)
	}
}

// TestCheck proves the checker on packages that are wrong in every way.
func TestCheck(t *testing.T) {
	const doc = "// Package nf is the vocabulary.\n"
	cases := map[string]struct {
		reason string
		file   string
		source string
		want   string // in a finding; empty: nothing is found
	}{
		"Clean":        {"what is right is let alone", "nf/a.go", doc + `package nf; import "time"; var _ time.Time`, ""},
		"Upwards":      {"a floor imports floors below", "nf/a.go", doc + `package nf; import _ "` + module + `store"`, "nf/a.go imports our store"},
		"Sideways":     {"floors of one height do not meet", "store/a.go", doc + `package store; import _ "` + module + `render"`, "store/a.go imports our render"},
		"Engine":       {"neither of the two imports the other", "catalog/a.go", doc + `package catalog; import _ "` + module + `lifecycle"`, "catalog/a.go imports our lifecycle"},
		"Driver":       {"main alone names drivers", "lifecycle/a.go", doc + `package lifecycle; import _ "` + module + `store/etcd"`, "lifecycle/a.go imports our store/etcd"},
		"Everything":   {"main may name anything", "cmd/k8splugin/a.go", doc + `package main; import _ "` + module + `store/etcd"`, ""},
		"ThirdParty":   {"client-go has one place", "lifecycle/a.go", doc + `package lifecycle; import _ "k8s.io/client-go/rest"`, "lifecycle/a.go imports k8s.io/client-go/rest"},
		"Below":        {"what a folder may, the folders in it may", "cluster/clustertest/a.go", doc + `package clustertest; import _ "k8s.io/client-go/rest"`, ""},
		"Neighbour":    {"a name that begins like another is another", "cluster/a.go", doc + `package cluster; import _ "k8s.io/client-go-tools"`, "k8s.io/client-go-tools"},
		"Bare":         {"the vocabulary is the standard library's alone", "nf/a.go", doc + `package nf; import _ "golang.org/x/sync/errgroup"`, "golang.org/x/sync/errgroup"},
		"Unknown":      {"a new module is added on purpose", "store/a.go", doc + `package store; import _ "example.org/x"`, "example.org/x"},
		"Unlisted":     {"a new package is added on purpose", "utils/a.go", doc + `package utils`, "utils is in no floor"},
		"Undocumented": {"a package says what it is for", "nf/a.go", `package nf`, "nf has 0 package comments"},
		"Nested":       {"a package without a comment of its own is found below one that has", "store/etcd/a.go", `package etcd`, "store/etcd has 0 package comments"},
		"Init":         {"nothing happens by importing", "nf/a.go", doc + `package nf; func init() {}`, "nf/a.go has a func init"},
		"TestInit":     {"nor in tests", "nf/a_test.go", `package nf; func init() {}`, "nf/a_test.go has a func init"},
		"Method":       {"a method of that name is called like any other", "nf/a.go", doc + `package nf; type t int; func (t) init() {}`, ""},
		"Test":         {"tests may lean on what they like", "nf/a_test.go", `package nf; import _ "` + module + `cluster"`, ""},
		"TestData":     {"what tests read is no package", "nf/testdata/a.go", `package wrong`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			house := sound()
			house[tc.file] = &fstest.MapFile{Data: []byte(tc.source)}
			if strings.HasSuffix(tc.file, "/a.go") {
				delete(house, path.Dir(tc.file)+"/doc.go")
			}
			findings := check(t, house)
			if tc.want == "" && len(findings) > 0 || tc.want != "" && !strings.Contains(strings.Join(findings, "\n"), tc.want) {
				t.Errorf("%s: found %q, want %q", tc.reason, findings, tc.want)
			}
		})
	}
}

func TestCheckMissesNoPackage(t *testing.T) {
	house := sound()
	delete(house, "store/doc.go")
	if got := check(t, house); len(got) != 1 || !strings.Contains(got[0], "store is not there") {
		t.Errorf("found %q, want that store is gone: a floor without a package hides a wrong name", got)
	}
	house["nf/more.go"] = &fstest.MapFile{Data: []byte("// Package nf is explained twice.\npackage nf")}
	if got := check(t, house); !slices.Contains(got, "nf has 2 package comments, want one") {
		t.Errorf("found %q, want the second package comment", got)
	}
}

// sound is a tree with every package, each with a comment and nothing else.
func sound() fstest.MapFS {
	house := make(fstest.MapFS)
	for dir := range floors {
		house[dir+"/doc.go"] = &fstest.MapFile{Data: []byte("// Package x is one.\npackage x")}
	}
	return house
}

// check returns what is wrong with a tree of packages. It reads the files
// itself: `go test` knows when to run again only by what the test opens.
func check(t *testing.T, tree fs.FS) []string {
	t.Helper()
	comments := make(map[string]int) // package comments by folder
	var findings []string
	for name, file := range parseAll(t, tree) {
		dir := path.Dir(name)
		if dir == "." {
			continue // these tests
		}
		if hasInit(file) {
			findings = append(findings, name+" has a func init; nothing may happen by importing a package")
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		comments[dir] += min(1, len(file.Doc.Text()))
		for _, i := range file.Imports {
			findings = append(findings, checkImport(dir, name, i)...)
		}
	}
	return slices.Sorted(slices.Values(append(findings, checkPackages(comments)...)))
}

// parseAll returns the Go files of a tree by their paths.
func parseAll(t *testing.T, tree fs.FS) map[string]*ast.File {
	t.Helper()
	files := make(map[string]*ast.File)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		files[name], err = parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func hasInit(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == "init"
	})
}
