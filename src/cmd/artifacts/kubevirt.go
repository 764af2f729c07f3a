package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// vmDefinition is the template of the CRD of a KubeVirt kind. The schema
// follows it.
const vmDefinition = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]ss.kubevirt.io
spec:
  group: kubevirt.io
  scope: Namespaced
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s, shortNames: [%[3]s]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
`

// kubevirt writes the CRDs of KubeVirt from its module's files. KubeVirt's
// operator normally creates most of them, but is not available as an image.
func (f folder) kubevirt(ctx context.Context) error {
	const name = "kubevirt.io/kubevirt"
	version, err := f.version(build{component: "kubevirt", module: "kud/lab/modules/kubevirt", pin: name})
	if err != nil {
		return err
	}
	dir, err := f.module(ctx, "kud/lab/modules/kubevirt", name+"@"+version)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(dir, "manifests", "generated", "kv-resource.yaml"))
	if err != nil {
		return fmt.Errorf("%s is not as it was: %w", name, err)
	}
	schemas, err := constants(filepath.Join(dir, "pkg", "virt-operator", "resource", "generate", "components", "validations_generated.go"))
	if err != nil {
		return err
	}
	all := bytes.NewBuffer(content)
	for _, one := range [][2]string{{"VirtualMachine", "vm"}, {"VirtualMachineInstance", "vmi"}} {
		singular := strings.ToLower(one[0])
		schema, ok := schemas[singular]
		if !ok {
			return fmt.Errorf("%s has no schema of %s", name, singular)
		}
		fmt.Fprintf(all, "\n"+vmDefinition, singular, one[0], one[1])
		for line := range strings.Lines(schema) {
			fmt.Fprint(all, "      ", line)
		}
	}
	target := filepath.Join(f.dir, "manifests", "kubevirt", version)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of KubeVirt: %w", err)
	}
	return os.WriteFile(filepath.Join(target, "definitions.yaml"), all.Bytes(), 0o644)
}

// module downloads a module that go.sum verifies, and returns its folder.
func (f folder) module(ctx context.Context, at, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join(f.root, filepath.FromSlash(at))
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output() // on failure the output has the reason
	var told struct{ Dir, Error string }
	if err := errors.Join(err, json.Unmarshal(out, &told)); err != nil {
		return "", fmt.Errorf("cannot fetch %s: %w %s", module, err, told.Error)
	}
	return told.Dir, nil
}

// constants returns the strings of the map that a Go file declares.
func constants(name string) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schemas: %w", err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		pair, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, isKey := pair.Key.(*ast.BasicLit)
		value, isValue := pair.Value.(*ast.BasicLit)
		if isKey && isValue {
			k, keyErr := strconv.Unquote(key.Value)
			v, valueErr := strconv.Unquote(value.Value)
			if keyErr == nil && valueErr == nil {
				found[k] = v
			}
		}
		return false
	})
	return found, nil
}
