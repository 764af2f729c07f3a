package tosca

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var (
	labelForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelKeyForm = regexp.MustCompile(`^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)
	valueForm    = regexp.MustCompile(`^([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`)
	envForm      = regexp.MustCompile(`^[-._A-Za-z][-._A-Za-z0-9]{0,252}$`)
	imageForm    = regexp.MustCompile(`^[a-z0-9][-._:/@A-Za-z0-9]{0,511}$`)
	sizeForm     = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,6})?) *(B|kB|KB|KiB|MB|MiB|GB|GiB|TB|TiB)$`)
	notInLabels  = regexp.MustCompile(`[^a-z0-9]+`)
)

// isLabel reports whether a text can be the name of an object.
func isLabel(text string) bool { return labelForm.MatchString(text) }

// asLabel returns a text as a DNS label, as far as it can be one: in lower case, with a
// hyphen for other characters.
func asLabel(text string) string {
	return strings.Trim(notInLabels.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// units has the suffixes of Kubernetes for the units of TOSCA.
var units = map[string]string{"B": "", "kB": "k", "KB": "k", "KiB": "Ki", "MB": "M", "MiB": "Mi", "GB": "G", "GiB": "Gi", "TB": "T", "TiB": "Ti"}

// size returns a size of TOSCA, such as "512 MB", as a quantity of Kubernetes; "" after a
// fault.
func (t *translator) size(file string, n *yaml.Node, what string) string {
	n = t.scope.resolve(n)
	found := sizeForm.FindStringSubmatch(scalar(n))
	if found == nil || strings.Trim(found[1], "0.") == "" {
		t.fault(file, n, "%s must be a size with a unit, such as 512 MB or 1 GiB", what)
		return ""
	}
	number := found[1]
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if found[2] == "B" && strings.Contains(number, ".") {
		t.fault(file, n, "%s must be a whole number of bytes", what)
	}
	return number + units[found[2]]
}

// cpus returns a number of CPUs, such as 0.5, as a quantity of Kubernetes; "" after a
// fault.
func (t *translator) cpus(file string, n *yaml.Node, what string) string {
	n = t.scope.resolve(n)
	text := scalar(n)
	value, ok := new(big.Rat).SetString(text)
	if !ok || len(text) > 20 || strings.ContainsAny(text, "eE/xX_") {
		t.fault(file, n, "%s must be a number of CPUs", what)
		return ""
	}
	milli := value.Mul(value, big.NewRat(1000, 1))
	if milli.Sign() <= 0 || !milli.IsInt() || milli.Cmp(big.NewRat(1000*maxNumber, 1)) > 0 {
		t.fault(file, n, "%s must be at least 0.001, with at most three digits after the point", what)
		return ""
	}
	return milliCPUs(milli.Num().Int64())
}

func milliCPUs(milli int64) string {
	if milli%1000 == 0 {
		return strconv.FormatInt(milli/1000, 10)
	}
	return strconv.FormatInt(milli, 10) + "m"
}

// port returns the number of a port; 0 after a fault.
func (t *translator) port(file string, n *yaml.Node, text, what string) int {
	port, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || port < 1 || port > 65535 {
		t.fault(file, n, "%s must be a port from 1 to 65535", what)
		return 0
	}
	return port
}

// texts returns a list of texts, or the words of a text.
func (t *translator) texts(file string, n *yaml.Node, what string) []any {
	n = t.scope.resolve(n)
	var out []any
	for item := range items(n) {
		item = t.scope.resolve(item)
		if item == nil || item.Kind != yaml.ScalarNode || isNull(item) {
			t.fault(file, n, "%s must be a list of texts", what)
			return nil
		}
		out = append(out, item.Value)
	}
	if n != nil && n.Kind != yaml.SequenceNode {
		t.fault(file, n, "%s must be a list of texts", what)
	}
	return out
}

// image returns the reference of an image; "" after a fault.
func (t *translator) image(file string, n *yaml.Node) string {
	n = t.scope.resolve(n)
	ref := strings.TrimPrefix(scalar(n), "docker://")
	if !imageForm.MatchString(ref) {
		t.fault(file, n, "the image %q must be the reference of an image in a registry", nf.Clip(scalar(n), maxQuote))
		return ""
	}
	return ref
}

// oneOf returns a text that is one of the given ones; "" if it is absent, or after a
// fault.
func (t *translator) oneOf(file string, n *yaml.Node, what string, allowed ...string) string {
	n = t.scope.resolve(n)
	if isNull(n) {
		return ""
	}
	if !slices.Contains(allowed, scalar(n)) {
		t.fault(file, n, "%s: %q cannot be translated; use one of %s", what, nf.Clip(scalar(n), maxQuote), strings.Join(allowed, ", "))
		return ""
	}
	return n.Value
}

// multus returns the annotation that attaches pods to networks, whose names are DNS
// labels.
func multus(networks []string) string {
	list := make([]string, len(networks))
	for i, name := range networks {
		list[i] = `{"name":"` + name + `"}`
	}
	return "[" + strings.Join(list, ",") + "]"
}
