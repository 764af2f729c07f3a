package native

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// selector is what the label parameters of a request select.
type selector struct {
	equal []nf.Attribute // labels with one value, which an index may find
	other labels.Requirements
}

// selectorOf parses the label parameters, each of which is a label selector as Kubernetes
// has it. All of them must match.
func selectorOf(r *http.Request) (selector, error) {
	var out selector
	for i, text := range r.URL.Query()[nf.AttributeLabel] {
		parsed, err := labels.Parse(text)
		if err != nil {
			return out, invalid(fmt.Sprintf("label[%d]", i), "is not a label selector: "+err.Error())
		}
		requirements, _ := parsed.Requirements()
		for _, one := range requirements {
			values := one.Values()
			switch value, single := values.PopAny(); {
			case single && values.Len() == 0 && (one.Operator() == selection.Equals || one.Operator() == selection.DoubleEquals || one.Operator() == selection.In):
				out.equal = append(out.equal, nf.Attribute{Name: nf.AttributeLabel, Value: one.Key() + "=" + value})
			default:
				out.other = append(out.other, one)
			}
		}
	}
	return out, nil
}

// matches reports whether labels meet the conditions that no index finds.
func (s selector) matches(of map[string]string) bool {
	for i := range s.other {
		if !s.other[i].Matches(labels.Set(of)) {
			return false
		}
	}
	return true
}
