package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"
)

// image is an image for the lab's hosts, with the names by which a site with
// network access would pull it.
type image struct {
	archive string
	names   []string
	entry   []string
	files   []imageFile
	user    string // user of its programs; empty: root
}

// imageFile is a file of an image: a copy of a built program, or a link.
type imageFile struct{ name, source, link string }

// images writes the image archives for every host of the lab and, if roles is
// set, those for single roles.
func (f folder) images(ctx context.Context, roles bool) error {
	own, err := f.own()
	if err != nil {
		return err
	}
	for _, p := range []program{{pkg: "./kud/lab/images/pause"}, {pkg: "./kud/lab/images/standin"}} {
		if err := f.program(ctx, build{module: "."}, p, filepath.Join(own, p.file())); err != nil {
			return err
		}
	}
	all, err := f.imageTable(own)
	if err != nil {
		return err
	}
	if roles {
		more, err := f.roleImages(ctx, own)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	return f.pack("images", all)
}

// own creates and returns the folder for the lab's own programs, which go into
// images.
func (f folder) own() (string, error) {
	dir := filepath.Join(f.dir, ".built", "images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the folder of the images' programs: %w", err)
	}
	return dir, nil
}

// pack writes archives that are missing or outdated into a folder.
func (f folder) pack(where string, all []image) error {
	if err := os.MkdirAll(filepath.Join(f.dir, where), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the images: %w", err)
	}
	for _, i := range all {
		content, err := i.pack()
		if err != nil {
			return fmt.Errorf("cannot pack the image %s: %w", i.archive, err)
		}
		name := filepath.Join(f.dir, where, i.archive+".tar")
		if there, err := os.ReadFile(name); err == nil && bytes.Equal(there, content) {
			continue
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return fmt.Errorf("cannot write the image %s: %w", i.archive, err)
		}
	}
	return nil
}

// imageTable returns the images. It omits images of programs that are not
// built.
func (f folder) imageTable(own string) ([]image, error) {
	versions, err := os.ReadFile(filepath.Join(f.root, "kud", "versions.yml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the versions of a site: %w", err)
	}
	edgex, err := f.edgexImages()
	if err != nil {
		return nil, err
	}
	standin := []imageFile{{name: "standin", source: filepath.Join(own, "standin")},
		{name: "bin/sh", link: "/standin"}, {name: "bin/redis-cli", link: "/standin"}, {name: "bin/standin", link: "/standin"}}
	table := []image{
		{archive: "pause", names: []string{"registry.k8s.io/pause:" + named(versions, "pause")}, entry: []string{"/pause"},
			files: []imageFile{{name: "pause", source: filepath.Join(own, "pause")}}},
		{archive: "standin", names: append(edgex, "localhost/standin:1"), entry: []string{"/standin"}, files: standin},
	}
	for _, b := range builds() {
		version, err := f.version(b)
		if err != nil {
			continue // the table of builds says why, if it matters
		}
		dir := filepath.Join(f.dir, b.component, version)
		switch b.component {
		case "coredns":
			table = append(table, image{archive: "coredns", names: []string{"registry.k8s.io/coredns/coredns:" + version}, entry: []string{"/coredns"},
				files: []imageFile{{name: "coredns", source: filepath.Join(dir, "coredns")}}})
		case "nfd":
			// Its manifests require a non-root user, and the image must name
			// one.
			nfd := image{archive: "nfd", names: []string{"registry.k8s.io/nfd/node-feature-discovery:" + version}, user: "65534:65534"}
			for _, p := range b.programs {
				nfd.files = append(nfd.files, imageFile{name: "usr/bin/" + p.file(), source: filepath.Join(dir, p.file())})
			}
			table = append(table, nfd)
		}
	}
	return slices.DeleteFunc(table, func(i image) bool {
		return slices.ContainsFunc(i.files, func(file imageFile) bool {
			_, err := os.Stat(file.source)
			return file.link == "" && err != nil
		})
	}), nil
}

// named returns a value of kud/versions.yml.
func named(versions []byte, name string) string {
	m := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(name) + `:\s*"?([^"\s]+)`).FindSubmatch(versions)
	if m == nil {
		return "none"
	}
	return string(m[1])
}

// edgexImages returns the names of the EdgeX sample's images.
func (f folder) edgexImages() ([]string, error) {
	const sample = "deployments/samples/edgex"
	variables, err := os.ReadFile(filepath.Join(f.root, sample, "metadata.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the sample: %w", err)
	}
	manifests, err := filepath.Glob(filepath.Join(f.root, sample, "deployments", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range manifests {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the sample: %w", err)
		}
		names = append(names, imageNames(content, variables)...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// imageNames returns the images of a manifest with default variables.
func imageNames(manifest, variables []byte) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\s+image:\s*(\S+)`).FindAllSubmatch(manifest, -1) {
		names = append(names, os.Expand(string(m[1]), func(variable string) string {
			v := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(variable) + `:\n(?:    .*\n)*?    default: (\S+)`).FindSubmatch(variables)
			if v == nil {
				return ""
			}
			return string(v[1])
		}))
	}
	return names
}

// pack returns an OCI archive of the image: one layer, and an index with all
// its names. The result is reproducible.
func (i image) pack() ([]byte, error) {
	layer, err := i.layer()
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	run := object{"Entrypoint": i.entry, "Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
	if i.user != "" {
		run["User"] = i.user
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": run,
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": object{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)},
		"layers": []object{{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(layer), "size": len(layer)}},
	})
	if err != nil {
		return nil, err
	}
	var entries []object
	for _, name := range i.names {
		entries = append(entries, object{
			"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(manifest), "size": len(manifest),
			"platform":    object{"architecture": runtime.GOARCH, "os": "linux"},
			"annotations": object{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
		})
	}
	index, err := json.Marshal(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries})
	if err != nil {
		return nil, err
	}
	var whole archive
	whole.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	whole.add("index.json", index, 0o644)
	for _, blob := range [][]byte{layer, config, manifest} {
		whole.add("blobs/sha256/"+digest(blob)[len("sha256:"):], blob, 0o644)
	}
	return whole.close()
}

func (i image) layer() ([]byte, error) {
	var (
		a    archive
		made []string
	)
	for _, file := range i.files {
		for dir := path.Dir(path.Clean(file.name)); dir != "." && !slices.Contains(made, dir); dir = path.Dir(dir) {
			made = append(made, dir)
		}
	}
	slices.Sort(made)
	for _, dir := range made {
		a.header(tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755})
	}
	for _, file := range i.files {
		if file.link != "" {
			a.header(tar.Header{Name: file.name, Typeflag: tar.TypeSymlink, Linkname: file.link, Mode: 0o777})
			continue
		}
		content, err := os.ReadFile(file.source)
		if err != nil {
			return nil, err
		}
		a.add(file.name, content, 0o755)
	}
	return a.close()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// archive is a tar in memory. Its close returns the first error.
type archive struct {
	buffer bytes.Buffer
	writer *tar.Writer
	err    error
}

func (a *archive) header(h tar.Header) {
	if a.writer == nil {
		a.writer = tar.NewWriter(&a.buffer)
	}
	h.ModTime = time.Unix(0, 0)
	if a.err == nil {
		a.err = a.writer.WriteHeader(&h)
	}
}

func (a *archive) add(name string, content []byte, mode int64) {
	a.header(tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))})
	if a.err == nil {
		_, a.err = a.writer.Write(content)
	}
}

func (a *archive) close() ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	if err := a.writer.Close(); err != nil {
		return nil, err
	}
	return a.buffer.Bytes(), nil
}
