package sol003

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// The suffixes of operations of the interface Vnflcm.
const (
	startSuffix    = "_start"
	endSuffix      = "_end"
	rollbackSuffix = "_rollback"
)

// interfaceOperation returns the name of an operation in the interface Vnflcm.
func interfaceOperation(o nf.OccurrenceOperation) string {
	switch o {
	case nf.OccurrenceModify:
		return "modify_information"
	case nf.OccurrenceConnectivity:
		return "change_external_connectivity"
	case nf.OccurrenceCurrentPackage:
		return "change_current_package"
	default:
		return string(verbOf(o))
	}
}

// scripts returns the scripts of a VNF that do not run as Jobs, by operation. They are those
// of the flavor that the VNF has after an occurrence or, if it has none then, before it.
func (rs resolver) scripts(ctx context.Context, t task) (string, map[string]tosca.Script, error) {
	of := t.After
	if of.Instantiated == nil {
		of = t.Before
	}
	if of.Instantiated == nil {
		return "", nil, nil
	}
	flavor, err := rs.flavor(ctx, of.Running(), of.Instantiated.Flavor)
	if err != nil {
		return "", nil, err
	}
	out := map[string]tosca.Script{}
	for name, script := range flavor.Scripts {
		if script.File != "" && !script.IsJob() {
			out[name] = script
		}
	}
	return of.Running(), out, nil
}

// hooked makes the parameters, and the credentials for scripts, a part of the task of a new
// occurrence. It returns nf.Invalid if the request lacks what its scripts need.
func (rs resolver) hooked(ctx context.Context, kind nf.OccurrenceOperation, req nf.VNFRequest, r *record, before nf.VNF) error {
	t := r.Task
	t.Before = before
	if kind == nf.OccurrenceModify {
		return nil
	}
	r.Task.Extra = withoutSecrets(withoutHosts(req.Extra))
	if rs.cfg.Hooks == nil {
		return nil
	}
	pkg, all, err := rs.scripts(ctx, t)
	if err != nil || len(all) == 0 {
		return err
	}
	r.Task.Secret = map[string]any{}
	for _, name := range [...]string{nf.HookHostsParameter, nf.HookSecretParameter} {
		if value, given := req.Extra[name]; given {
			r.Task.Secret[name] = value
		}
	}
	for _, suffix := range [...]string{startSuffix, endSuffix, rollbackSuffix + startSuffix, rollbackSuffix + endSuffix} {
		name := interfaceOperation(kind) + suffix
		script, found := all[name]
		if !found {
			continue
		}
		call, err := callOf(pkg, name, script)
		if err != nil {
			return err
		}
		call.Secret = r.Task.Secret
		if err := rs.cfg.Hooks.Check(call); err != nil {
			return err
		}
	}
	return nil
}

// withoutSecrets returns parameters without those for scripts that may have credentials.
func withoutSecrets(params map[string]any) map[string]any {
	_, hosts := params[nf.HookHostsParameter]
	_, secret := params[nf.HookSecretParameter]
	if !hosts && !secret {
		return params
	}
	params = maps.Clone(params)
	delete(params, nf.HookHostsParameter)
	delete(params, nf.HookSecretParameter)
	return params
}

// timeoutInput is the input of a script with its time limit in seconds.
const (
	timeoutInput   = "timeout"
	scriptTimeout  = 10 * time.Minute
	longestTimeout = 24 * time.Hour
)

// callOf returns the call of a script.
func callOf(pkg, name string, s tosca.Script) (nf.VNFHook, error) {
	out := nf.VNFHook{Package: pkg, Operation: name, Type: s.Type, File: s.File, Inputs: maps.Clone(s.Inputs), Timeout: scriptTimeout}
	value, given := out.Inputs[timeoutInput]
	delete(out.Inputs, timeoutInput)
	if !given {
		return out, nil
	}
	seconds, err := json.Number(fmt.Sprint(value)).Int64()
	if err != nil || seconds < 1 || seconds > int64(longestTimeout.Seconds()) {
		message := fmt.Sprintf("must be a number of seconds from 1 to %d", int64(longestTimeout.Seconds()))
		return out, nf.E(nf.Invalid, "run", "the script of operation "+name, nf.Violations{{File: s.File, Field: "interfaces.Vnflcm." + name + ".inputs." + timeoutInput, Message: message}})
	}
	out.Timeout = time.Duration(seconds) * time.Second
	return out, nil
}

// scripts runs the scripts of an attempt.
type scripts struct{ run *run }

// steps returns the steps that run scripts before and after the engine's operation.
func (sc scripts) steps(ctx context.Context) (before, after []operation.Step, err error) {
	r := sc.run
	if r.m.cfg.Hooks == nil {
		return nil, nil, nil
	}
	pkg, all, err := r.m.resolve.scripts(ctx, r.record().Task)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	name := interfaceOperation(r.record().Operation)
	if r.undoes() {
		name += rollbackSuffix
	}
	for i, steps := range [...]*[]operation.Step{&before, &after} {
		suffix := [...]string{startSuffix, endSuffix}[i]
		script, found := all[name+suffix]
		if !found {
			continue
		}
		call, err := callOf(pkg, name+suffix, script)
		if err != nil {
			return nil, nil, err
		}
		step := r.step(nf.PhaseScript, func(ctx context.Context) error { return sc.execute(ctx, call) })
		step.StageName, step.Index = name+suffix, i+1
		*steps = append(*steps, step)
	}
	return before, after, nil
}

// execute runs one script. From then on, the occurrence is processed: something may have
// changed. Its output is the log of the attempt.
func (sc scripts) execute(ctx context.Context, call nf.VNFHook) error {
	r := sc.run
	if err := r.journal.save(ctx, stateOf(r.op().Verb), r.vnf, nil); err != nil {
		return err
	}
	if err := r.attempt.Held(ctx); err != nil {
		return err
	}
	t := r.record().Task
	call.ID, call.VNF, call.Occurrence = r.op().ID+"-"+call.Operation, r.vnf.ID, r.record().ID
	call.Params, call.Secret = t.Extra, t.Secret
	hidden := nf.NewRedactor(textsOf(t.Secret))
	log := r.attempt.Journal(hidden.Text)
	stop := log.Periodically(ctx)
	err := r.m.cfg.Hooks.Run(ctx, call, func(e nf.LogEntry) error { return log.Add(ctx, e) })
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout) // the end of the log is stored, however the script ends
	defer cancel()
	return errors.Join(err, log.Flush(last))
}

const outcomeTimeout = 10 * time.Second

// concluded reports whether a script runs, or has run, after the engine's operation.
func (sc scripts) concluded() bool {
	begun := false
	for _, s := range sc.run.op().Steps {
		if begun && s.Phase == nf.PhaseScript {
			return true
		}
		begun = begun || s.Phase == nf.PhaseBegin
	}
	return false
}

// textsOf returns the texts in a JSON value, at any depth.
func textsOf(value any) (out []string) {
	switch value := value.(type) {
	case string:
		out = append(out, value)
	case []any:
		for _, inner := range value {
			out = append(out, textsOf(inner)...)
		}
	case map[string]any:
		for _, inner := range value {
			out = append(out, textsOf(inner)...)
		}
	}
	return out
}
