package main

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// etcdImageTag is the suffix of the tags of kubeadm's etcd images, which number
// the packagings of one version.
const etcdImageTag = "-0"

// kubeadmImages returns the images of a kubeadm control plane, about 450 MB.
// They have a separate folder, which only selected hosts import.
func (f folder) kubeadmImages() ([]image, error) {
	dir := make(map[string]string)
	tag := make(map[string]string)
	for _, b := range builds() {
		if _, known := dir[b.component]; known || b.component != "kubernetes" && b.component != "etcd" {
			continue
		}
		version, err := f.version(b)
		if err != nil {
			return nil, err
		}
		dir[b.component], tag[b.component] = filepath.Join(f.dir, b.component, version), version
	}
	table := []image{{
		archive: "etcd", names: []string{"registry.k8s.io/etcd:" + strings.TrimPrefix(tag["etcd"], "v") + etcdImageTag},
		files: []imageFile{{name: "usr/local/bin/etcd", source: filepath.Join(dir["etcd"], "etcd")}, {name: "usr/local/bin/etcdctl", source: filepath.Join(dir["etcd"], "etcdctl")}},
	}}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		table = append(table, image{archive: name, names: []string{"registry.k8s.io/" + name + ":" + tag["kubernetes"]},
			files: []imageFile{{name: "usr/local/bin/" + name, source: filepath.Join(dir["kubernetes"], name)}}})
	}
	nft, err := linked("/usr/sbin/nft")
	if err != nil {
		return nil, fmt.Errorf("kube-proxy's image holds the nft of this machine (the package nftables): %w", err)
	}
	proxy := &table[len(table)-1]
	proxy.files = append(proxy.files, imageFile{name: "usr/bin/nft", source: "/usr/sbin/nft"})
	proxy.files = append(proxy.files, nft...)
	return table, nil
}

func (f folder) packKubeadm() error {
	all, err := f.kubeadmImages()
	if err != nil {
		return err
	}
	return f.pack("images-kubeadm", all)
}

// linked returns what a program of this machine needs to run: its loader and,
// recursively, its shared libraries.
func linked(program string) ([]imageFile, error) {
	var (
		found []imageFile
		have  []string
		todo  = []string{program}
	)
	for len(todo) > 0 {
		loader, libraries, err := needs(todo[0])
		if err != nil {
			return nil, err
		}
		todo = todo[1:]
		if loader != "" {
			found = append(found, imageFile{name: strings.TrimPrefix(loader, "/"), source: loader})
			have = append(have, filepath.Base(loader))
		}
		for _, library := range libraries {
			if slices.Contains(have, library) {
				continue
			}
			path, err := libraryPath(library)
			if err != nil {
				return nil, err
			}
			have = append(have, library)
			found = append(found, imageFile{name: "lib/" + multiarch() + "/" + library, source: path})
			todo = append(todo, path)
		}
	}
	return found, nil
}

// needs returns the loader of an ELF file, if it is a program, and its
// libraries.
func needs(name string) (loader string, libraries []string, err error) {
	file, err := elf.Open(name)
	if err != nil {
		return "", nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			content, err := io.ReadAll(p.Open())
			if err != nil {
				return "", nil, fmt.Errorf("cannot read %s: %w", name, err)
			}
			loader = strings.TrimRight(string(content), "\x00")
		}
	}
	libraries, err = file.ImportedLibraries()
	return loader, libraries, err
}

func libraryPath(library string) (string, error) {
	for _, dir := range []string{"/lib/" + multiarch(), "/usr/lib/" + multiarch(), "/lib64", "/usr/lib64"} {
		if path := filepath.Join(dir, library); exists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s on this machine", library)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// multiarch returns Debian's name of the folder of a processor's libraries.
func multiarch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64-linux-gnu"
	}
	return "x86_64-linux-gnu"
}
