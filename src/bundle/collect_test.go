package bundle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// engine has the instances by id. Every call before its start fails.
type engine struct {
	instances map[string]nf.Instance
	start     time.Time
	lists     int // of instances
}

func (e *engine) failure() error {
	if time.Now().Before(e.start) {
		return errors.New("the engine is down")
	}
	return nil
}

func (e *engine) Instance(_ context.Context, id string) (nf.Instance, error) {
	in, ok := e.instances[id]
	if err := e.failure(); err != nil || ok {
		return in, err
	}
	return in, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
}

func (e *engine) Instances(context.Context) ([]nf.Instance, error) {
	e.lists++
	return slices.Collect(maps.Values(e.instances)), e.failure()
}

// TestRunWithoutPackages does not read all instances if there is no composed package.
func TestRunWithoutPackages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(t), &engine{}
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		running.Go(func() { f.Run(ctx, e, nil, slog.New(slog.NewTextHandler(t.Output(), nil))) })
		<-time.After(time.Hour)
		stop()
		running.Wait()
		if e.lists > 0 {
			t.Errorf("the instances were read %d times", e.lists)
		}
	})
}

// TestRun collects garbage at each interval, and again after an error.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(t), &engine{start: time.Now().Add(15 * time.Minute)}
		f.define(t, chart())
		k := f.profile(t, map[string]string{"manifest.yaml": values, "over.yaml": "a: 0"})
		reasons := []string{"an instance has it as an amendment", "a version of a configuration was made from it", "its instance is deleted", "it is composed now"}
		packages := map[string]string{} // reason → id
		for i, reason := range reasons {
			must(t, f.UploadProfile(t.Context(), k, reader(map[string]string{"manifest.yaml": values, "over.yaml": "a: " + strconv.Itoa(i+1)})))
			c, err := f.Compose(t.Context(), k)
			must(t, err)
			packages[reason] = c.Package
		}
		e.instances = map[string]nf.Instance{"here": {ID: "here", Amendments: []nf.Amendment{{Name: "a", Package: packages[reasons[0]]}}}}
		for instance, id := range map[string]string{"here": packages[reasons[1]], "gone": packages[reasons[2]]} {
			must(t, f.InstanceRecords().Record(t.Context(), bundle.Version{
				ConfigKey: bundle.ConfigKey{Instance: instance, Generation: "g", Config: "a"}, Number: 1, Package: id, Values: json.RawMessage("{}"),
			}))
		}
		must(t, f.PutConnection(t.Context(), bundle.Connection{Region: "gone", Registered: f.now}))
		f.now = f.now.Add(2 * time.Hour)
		var logged bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			f.Run(ctx, e, func(_ context.Context, id string) (nf.Region, error) {
				return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
			}, slog.New(slog.NewTextHandler(&logged, nil)))
		}()

		<-time.After(11 * time.Minute)
		synctest.Wait()
		if n := strings.Count(logged.String(), "the engine is down"); n != 1 {
			t.Errorf("the error of the first pass is logged %d times, want once: %s", n, logged.String())
		}
		for _, reason := range reasons {
			if _, err := f.shelf.Package(ctx, packages[reason]); err != nil {
				t.Errorf("a pass without the instances deletes a package: %v", err)
			}
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		for _, reason := range reasons {
			if _, err := f.shelf.Package(ctx, packages[reason]); (err == nil) == (reason == reasons[2]) {
				t.Errorf("%s: the package gives %v", reason, err)
			}
		}
		left := append(f.keys(t, "onap/configs/gone"), f.keys(t, "onap/connections")...)
		if n := len(f.keys(t, "onap/configs/here")); n != 1 || len(left) > 0 {
			t.Errorf("%d versions of the present instance, want 1; stale records: %v", n, left)
		}
		stop()
		<-stopped
	})
}
