package cluster

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestClipped(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string // its end
	}{
		"short":   {"what is short stays", "no", "no"},
		"limit":   {"what just fits stays", strings.Repeat("x", longestMessage), "xxx"},
		"long":    {"what is long is cut, and says by how much", strings.Repeat("x", 10000), "xxx… (7990 more bytes)"},
		"letter":  {"no letter is cut in two", strings.Repeat("€", 10000), "€€… (27990 more bytes)"},
		"no text": {"what is no text is cut somewhere", strings.Repeat("\x80", 10000), "… (10000 more bytes)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clipped(tc.text)
			if !strings.HasSuffix(got, tc.want) || len(got) > longestMessage || utf8.ValidString(tc.text) != utf8.ValidString(got) && got != tc.want {
				t.Errorf("%s: it ends in %q, %d bytes", tc.reason, got[max(0, len(got)-40):], len(got))
			}
			if clipped(got) != got {
				t.Errorf("%s: it is cut again", tc.reason)
			}
		})
	}
}

func TestViolationsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	ref := nf.Ref{Version: "v1", Kind: "ConfigMap", Name: "a"}
	for reason, s := range map[string]metav1.Status{
		"a cause's message": {Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: long, Field: "data"}}}},
		"the whole message": {Message: long},
	} {
		if v := violations(ref, s); len(v) != 1 || len(v[0].Message) > longestMessage {
			t.Errorf("%s is kept whole: %d bytes", reason, len(v[0].Message))
		}
	}
}
