package onap

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// uncertain is any status of a request of which an attempt before got no response.
const uncertain = 0

// call sends a request of CDS, or of an operator, and returns its status. It must be one of
// those given, or be that of a change that an attempt before has made. Content that is not JSON is sent as it is.
func (f *Flow) call(ctx context.Context, method, at string, body any, statuses ...int) (int, error) {
	content, raw := body.([]byte)
	if !raw && body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return 0, fmt.Errorf("cannot write %s: %w", at, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, f.cfg.Service+at, bytes.NewReader(content))
	if err != nil {
		return 0, fmt.Errorf("cannot send %s %s: %w", method, at, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.cfg.Client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("cannot send %s %s: %w", method, at, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("cannot read the response to %s %s: %w", method, at, err)
	}
	// An attempt before may have had its effect.
	done := map[string]int{http.MethodPost: http.StatusConflict, http.MethodDelete: http.StatusNotFound}[method]
	repeated := resp.Header.Get(script.Repeated) != ""
	if slices.Contains(statuses, resp.StatusCode) || repeated && (resp.StatusCode == done || slices.Contains(statuses, uncertain)) {
		return resp.StatusCode, nil
	}
	return 0, fmt.Errorf("%s %s: status %d, want %v: %s", method, at, resp.StatusCode, statuses, text)
}

// missing reports whether an object of ONAP's API does not exist.
func (f *Flow) missing(ctx context.Context, at string) (bool, error) {
	status, err := f.call(ctx, http.MethodGet, at, nil, http.StatusOK, http.StatusNotFound, http.StatusInternalServerError)
	return status != http.StatusOK, err
}

// uploadProfile uploads a profile with the namespace of the VNF, as CDS does before the
// stack is created. One that exists is left as it is.
func (f *Flow) uploadProfile(ctx context.Context) error {
	const at = definition + "/profile"
	missing, err := f.missing(ctx, at+"/"+profile)
	if err != nil || !missing {
		return err
	}
	overlay, err := archive(map[string][]byte{"manifest.yaml": []byte("version: v1\ntype: {values: values.yaml}\n"), "values.yaml": []byte("{}\n")})
	if err != nil {
		return err
	}
	err = f.create(ctx, at, profile, map[string]any{
		"rb-name": invariant, "rb-version": customization, "profile-name": profile, "release-name": "vfw", "namespace": f.cfg.Namespace,
	})
	if err == nil {
		_, err = f.call(ctx, http.MethodPost, at+"/"+profile+"/content", overlay, http.StatusOK)
	}
	if err == nil {
		f.cfg.Report("CDS uploads the profile: namespace " + f.cfg.Namespace)
	}
	return err
}

// Configure has CDS upload the template of the rules, if it is missing, and set the rules.
func (f *Flow) Configure(ctx context.Context) error {
	const at = definition + "/config-template"
	missing, err := f.missing(ctx, at+"/rules")
	if err != nil {
		return err
	}
	if missing {
		chart, err := pack(f.cfg.Sample, "config", "rules/")
		if err != nil {
			return err
		}
		if err := f.create(ctx, at, "rules", map[string]any{"template-name": "rules"}); err != nil {
			return err
		}
		if _, err := f.call(ctx, http.MethodPost, at+"/rules/content", chart, http.StatusOK); err != nil {
			return err
		}
	}
	configs := "/v1/instance/" + f.Stack.ID + "/config"
	err = f.create(ctx, configs, "rules", map[string]any{"template-name": "rules", "config-name": "rules", "values": map[string]any{"port": "8888"}})
	if err == nil {
		f.cfg.Report("CDS configures the VNF: the rules allow port 8888")
	}
	return err
}

// create creates an object of ONAP's API in a collection. If an attempt before was accepted,
// and the next one is rejected because of the first, it waits until the object exists.
func (f *Flow) create(ctx context.Context, in, name string, body any) error {
	status, err := f.call(ctx, http.MethodPost, in, body, http.StatusCreated, uncertain)
	if err != nil || status == http.StatusCreated {
		return err
	}
	return f.appears(ctx, in+"/"+name)
}

// appears waits until an object of ONAP's API exists.
func (f *Flow) appears(ctx context.Context, at string) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		missing, err := f.missing(limited, at)
		if err != nil || !missing {
			return err
		}
		if !script.Hold(limited, nil, f.interval()) {
			return fmt.Errorf("cannot find %s: %w", at, limited.Err())
		}
	}
}

// pack packs a folder of the sample as an archive of a chart, below a folder.
func pack(sample fs.FS, folder, below string) ([]byte, error) {
	files := map[string][]byte{}
	inside, err := fs.Sub(sample, folder)
	if err == nil {
		err = fs.WalkDir(inside, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files[path.Join(below, name)], err = fs.ReadFile(inside, name)
			return err //nolint:wrapcheck // wrapped below
		})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the sample: %w", err)
	}
	return archive(files)
}

// archive returns a gzipped tar.
func archive(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipped)
	for name, content := range files {
		err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = writer.Write(content)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack: %w", err)
	}
	return out.Bytes(), nil
}
