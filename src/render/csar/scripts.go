package csar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// The inputs of a script that say how it runs. The others are for the script.
const (
	imageInput   = "image"           // instead of the parameter
	accountInput = "service_account" // empty: the script has no access to the API server
	timeoutInput = "timeout"         // in seconds
)

// scriptEvents are the events at which the operations of the interface Vnflcm run.
var scriptEvents = map[string]nf.HookEvent{
	"instantiate_start": nf.PreInstall, "instantiate_end": nf.PostInstall,
	"change_current_package_start": nf.PreUpgrade, "change_current_package_end": nf.PostUpgrade,
	"terminate_start": nf.PreDelete, "terminate_end": nf.PostDelete,
}

// interpreters run the files of a type of artifacts.
var interpreters = map[string]string{
	"tosca.artifacts.Implementation.Bash":   "bash",
	"tosca.artifacts.Implementation.Python": "python3",
}

const (
	scriptFolder   = "/vnflcm"
	scriptFile     = "script"
	inputsFile     = "inputs.json"
	scriptTimeout  = 10 * time.Minute
	longestTimeout = 24 * time.Hour
	maxScript      = 512 << 10 // bytes; a Secret has at most 1 MiB
)

// hooks returns the hooks that run the scripts of the flavor: for each script a Secret,
// with the script and its inputs, and a Job. A script of an operation that has no hooks is
// a warning. nf.ScriptImageParameter is removed from the inputs if there are scripts.
func (s *sizing) hooks(in *render.Input) (hooks []render.Hook, warnings []string, err error) {
	if !scripted(s.scripts) {
		return nil, nil, nil
	}
	_, given := in.Inputs.Parameters[nf.ScriptImageParameter]
	name, err := text(in, nf.ScriptImageParameter)
	if err != nil {
		return nil, nil, err
	}
	for _, operation := range slices.Sorted(maps.Keys(s.scripts)) {
		script := s.scripts[operation]
		event, runs := scriptEvents[operation]
		switch {
		case !script.IsJob():
		case !runs:
			warnings = append(warnings, fmt.Sprintf("the script %s of operation %s is not run; scripts run in %s", script.File, operation, strings.Join(slices.Sorted(maps.Keys(scriptEvents)), ", ")))
		case given && name == "":
			warnings = append(warnings, fmt.Sprintf("the script %s of operation %s is not run, because %s is empty", script.File, operation, nf.ScriptImageParameter))
		default:
			own, err := scriptHook(operation, event, script, name, in)
			if err != nil {
				return nil, nil, err
			}
			hooks = append(hooks, own...)
		}
	}
	return hooks, warnings, nil
}

// scripted reports whether an operation has a script that is a Job.
func scripted(all map[string]tosca.Script) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(all)), tosca.Script.IsJob)
}

// scriptHook returns the hooks of one script.
func scriptHook(operation string, event nf.HookEvent, s tosca.Script, image string, in *render.Input) ([]render.Hook, error) {
	inputs := maps.Clone(s.Inputs)
	take := func(name string) any {
		value := inputs[name]
		delete(inputs, name)
		return value
	}
	if own, isText := take(imageInput).(string); isText && own != "" {
		image = own
	}
	account, _ := take(accountInput).(string)
	deadline, fault := seconds(take(timeoutInput))
	interpreter, known := interpreters[s.Type]
	content := in.Files[s.File]
	switch {
	case image == "":
		return nil, unusable(nf.ScriptImageParameter, fmt.Sprintf("is required: it runs the script %s of operation %s; if it is empty, no script runs", s.File, operation))
	case fault != "":
		return nil, faulty(s, operation, "inputs."+timeoutInput+" "+fault)
	case !known:
		return nil, faulty(s, operation, fmt.Sprintf("has an artifact of type %q; scripts have one of %s", nf.Clip(s.Type, maxQuote), strings.Join(slices.Sorted(maps.Keys(interpreters)), ", ")))
	case content == nil || len(content) > maxScript:
		return nil, faulty(s, operation, fmt.Sprintf("has more than %d bytes", maxScript))
	}
	parameters, err := json.Marshal(map[string]any{
		"operation": operation, "vnfInstanceId": in.Builtins["vnf_id"], "namespace": in.Builtins["namespace"], "inputs": inputs, "additionalParams": in.Inputs.Parameters,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the inputs of %s: %w", s.File, err)
	}
	// A namespace may have several VNFs. The longest name has 63 characters at most.
	name := in.Builtins["vnf_id"] + "-" + strings.NewReplacer("_current_package", "", "_", "-").Replace(operation)
	pod := map[string]any{
		"restartPolicy": "Never", "automountServiceAccountToken": account != "",
		"containers": []any{map[string]any{
			"name": "script", "image": image, "workingDir": scriptFolder, "command": []any{interpreter, scriptFolder + "/" + scriptFile, scriptFolder + "/" + inputsFile},
			"terminationMessagePolicy": "FallbackToLogsOnError", // the end of the log is in the failure of the operation
			"volumeMounts":             []any{map[string]any{"name": "script", "mountPath": scriptFolder, "readOnly": true}},
		}},
		"volumes": []any{map[string]any{"name": "script", "secret": map[string]any{"secretName": name}}},
	}
	if account != "" {
		pod["serviceAccountName"] = account
	}
	metadata := map[string]any{"name": name, "namespace": in.Builtins["namespace"]}
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": map[string]any{scriptFile: string(content), inputsFile: string(parameters)}}
	job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": maps.Clone(metadata), "spec": map[string]any{
		"backoffLimit": int64(0), "activeDeadlineSeconds": int64(deadline.Seconds()), "template": map[string]any{"spec": pod},
	}}
	var out []render.Hook
	for weight, object := range []map[string]any{secret, job} {
		out = append(out, render.Hook{
			Object: render.Object{Unstructured: &unstructured.Unstructured{Object: object}, File: s.File, Line: 1}, Events: []nf.HookEvent{event}, Weight: weight,
		})
	}
	return out, nil
}

// seconds reads a time limit in seconds.
func seconds(value any) (limit time.Duration, fault string) {
	number, err := json.Number(fmt.Sprint(value)).Int64()
	switch {
	case value == nil:
		return scriptTimeout, ""
	case err != nil || number < 1 || number > int64(longestTimeout.Seconds()):
		return 0, fmt.Sprintf("must be a number of seconds from 1 to %d", int64(longestTimeout.Seconds()))
	}
	return time.Duration(number) * time.Second, ""
}

func faulty(s tosca.Script, operation, message string) error {
	return nf.E(nf.Invalid, "render", "the CSAR", nf.Violations{{File: s.File, Field: "interfaces.Vnflcm." + operation, Message: message}})
}
