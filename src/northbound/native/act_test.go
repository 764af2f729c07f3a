package native_test

import (
	"errors"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestActions(t *testing.T) {
	t.Parallel()
	const scale, restart = "POST /v1/vnf_instances/vnf-1/scale", "POST /v1/vnf_instances/vnf-1/restart"
	applied := func(s *standIn) {
		s.operation.Verb, s.operation.Instance.Target, s.operation.Instance.Revision = nf.Scale, nf.Revision{}, 0
		s.versions = []nf.Operation{with(s.operation, func(o *nf.Operation) { o.Applied = noon(2) })}
	}
	three := nf.ActRequest{Verb: nf.Scale, Scale: []nf.Scaling{{Workload: "Deployment/web", Replicas: new(int64(3))}}}
	runAll(t, map[string]exchange{
		"Scale": {
			reason: "200 once the number is set", arrange: applied, request: scale, header: []string{asJSON}, body: `{"workloads": [{"workload": "Deployment/web", "replicas": 3}]}`,
			status: 200, want: `{"vnf_id": "vnf-1", "operation_id": "op-1", "...": ""}`, asked: three,
		},
		"Everything": {
			reason: "every option is handed on", arrange: applied, request: scale, header: []string{asJSON},
			body: `{"workloads": [{"workload": "Deployment/web", "by": -1}, {"workload": "Sets.example.org/a", "replicas": 0, "path": "/spec/n"}], "force": true,
				"on_failure": "keep", "timeout": "5m", "on_unreachable": "wait", "wait": "applied"}`,
			status: 200, want: asked,
			asked: nf.ActRequest{
				Verb: nf.Scale, Force: true, Scale: []nf.Scaling{{Workload: "Deployment/web", By: -1}, {Workload: "Sets.example.org/a", Replicas: new(int64(0)), Path: "/spec/n"}},
				Options: nf.Options{OnFailure: nf.Keep, Timeout: 5 * time.Minute, WaitForRegion: true, NoWait: true},
			},
		},
		"DryRun": {
			reason: "a dry run returns the changes", request: scale + "?dry_run=true", header: []string{asJSON}, body: `{"workloads": [{"workload": "Deployment/web", "replicas": 3}]}`,
			status: 200, want: `{"changes": [{"action": "configured", "...": ""}], "warnings": [], "...": ""}`, asked: three,
		},
		"Async": {
			reason: "respond-async does not wait", arrange: stuck, request: restart, header: []string{"Prefer: respond-async"}, status: 202, want: asked,
			headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"}, asked: nf.ActRequest{Verb: nf.Restart},
		},
		"Restart": {
			reason: "named workloads", arrange: applied, request: restart, header: []string{asJSON}, body: `{"workloads": ["Deployment/web"]}`, status: 200, want: asked,
			asked: nf.ActRequest{Verb: nf.Restart, Workloads: []string{"Deployment/web"}},
		},
		"Heal": {
			reason: "without a body, missing objects are created", arrange: applied, request: "POST /v1/vnf_instances/vnf-1/heal", status: 200, want: asked, asked: nf.ActRequest{Verb: nf.Heal},
		},
		"HealPods": {
			reason: "named pods are evicted", arrange: applied, request: "POST /v1/vnf_instances/vnf-1/heal", header: []string{asJSON},
			body: `{"pods": ["web-1", "edge/web-2"], "force": true, "eviction_timeout": "30s", "timeout": 60}`, status: 200, want: asked,
			asked: nf.ActRequest{Verb: nf.Heal, Pods: []string{"web-1", "edge/web-2"}, Force: true, Patience: 30 * time.Second, Options: nf.Options{Timeout: time.Minute}},
		},
		"Stop": {
			reason: "named machines", arrange: applied, request: "POST /v1/vnf_instances/vnf-1/stop", header: []string{asJSON}, body: `{"workloads": ["VirtualMachine/fw"], "on_failure": "keep"}`,
			status: 200, want: asked, asked: nf.ActRequest{Verb: nf.Stop, Workloads: []string{"VirtualMachine/fw"}, Options: nf.Options{OnFailure: nf.Keep}},
		},
		"Start": {
			reason: "a dry run", request: "POST /v1/vnf_instances/vnf-1/start?dry_run=true", header: []string{asJSON}, body: `{"workloads": ["VirtualMachine/fw"]}`,
			status: 200, want: `{"changes": [{"action": "configured", "...": ""}], "warnings": [], "...": ""}`, asked: nf.ActRequest{Verb: nf.Start, Workloads: []string{"VirtualMachine/fw"}},
		},
		"Migrate": {
			reason: "named machines", arrange: applied, request: "POST /v1/vnf_instances/vnf-1/migrate", header: []string{asJSON}, body: `{"workloads": ["VirtualMachine/fw"]}`,
			status: 200, want: asked, asked: nf.ActRequest{Verb: nf.Migrate, Workloads: []string{"VirtualMachine/fw"}},
		},
		"MigrateUndo":    {reason: "a migration has no undo", request: "POST /v1/vnf_instances/vnf-1/migrate", header: []string{asJSON}, body: `{"workloads": ["VirtualMachine/fw"], "on_failure": "undo"}`, status: 400, want: problem("invalid")},
		"MigrateNothing": {reason: "a machine is named", request: "POST /v1/vnf_instances/vnf-1/migrate", header: []string{asJSON}, body: `{}`, status: 400, want: problem("invalid")},
		"HealDrift": {
			reason: "what others have changed is corrected", arrange: applied, request: "POST /v1/vnf_instances/vnf-1/heal", header: []string{asJSON},
			body: `{"drift": true}`, status: 200, want: asked, asked: nf.ActRequest{Verb: nf.Heal, Drift: true},
		},
		"HealTime": {
			reason: "the patience is a duration", request: "POST /v1/vnf_instances/vnf-1/heal", header: []string{asJSON}, body: `{"eviction_timeout": "48h"}`, status: 400,
			want: problem("invalid", `"errors": [{"field": "eviction_timeout", "message": "<<>>"}]`),
		},
		"HealUndo": {reason: "there is nothing to undo", request: "POST /v1/vnf_instances/vnf-1/heal", header: []string{asJSON}, body: `{"on_failure": "undo"}`, status: 400, want: problem("invalid")},
		"Settings": {
			reason: "the instance shows what was set",
			arrange: func(s *standIn) {
				s.instance.Settings = []nf.Setting{{Ref: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Name: "web"}, Path: "/spec/replicas", Value: []byte("3"), Planned: []byte("1")}}
			},
			request: "GET /v1/vnf_instances/vnf-1", status: 200,
			want: `{"settings": [{"api_version": "apps/v1", "kind": "Deployment", "namespace": "ns", "name": "web", "path": "spec.replicas", "value": 3, "package_value": 1}], "...": ""}`,
		},
		"Owned":   {reason: "an autoscaler is a conflict", arrange: failing("Act", nf.E(nf.Conflict, "scale", "workloads", errors.New("is scaled by x"))), request: scale, header: []string{asJSON}, body: `{"workloads": [{"workload": "Deployment/web", "replicas": 3}]}`, status: 409, want: problem("conflict")},
		"Nothing": {reason: "a scale needs a workload", request: scale, header: []string{asJSON}, body: `{"workloads": []}`, status: 400, want: problem("invalid")},
		"Huge":    {reason: "a number has 31 bits", request: scale, header: []string{asJSON}, body: `{"workloads": [{"workload": "Deployment/web", "replicas": 2147483648}]}`, status: 400, want: problem("invalid")},
		"Missing": {reason: "no instance, nothing to restart", request: "POST /v1/vnf_instances/vnf-2/restart", status: 404, want: problem("not-found")},
	})
}
