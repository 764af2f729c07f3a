package cluster

import (
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
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

func TestMissingRule(t *testing.T) {
	of := &metav1.StatusDetails{Group: "apps", Kind: "deployments", Name: "a"}
	cases := map[string]struct {
		reason string
		status metav1.Status
		rule   bool
	}{
		"permission": {"the account lacks a rule", metav1.Status{Reason: metav1.StatusReasonForbidden, Details: of,
			Message: `deployments.apps "a" is forbidden: User "x" cannot patch resource "deployments" in API group "apps" in the namespace "n"`}, true},
		"admission": {"no rule helps against an admission plugin", metav1.Status{Reason: metav1.StatusReasonForbidden, Details: of,
			Message: `deployments.apps "a" is forbidden: exceeded quota: q`}, false},
		"invalid": {"the object is wrong", metav1.Status{Reason: metav1.StatusReasonInvalid, Details: of, Message: "spec.replicas"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := region("east").fail(t.Context(), "apply", "Deployment a", &apierrors.StatusError{ErrStatus: tc.status})
			if got := strings.HasSuffix(err.Error(), `; the region's account needs a rule for {apiGroups: ["apps"], resources: ["deployments"]}: on a site of kud, add it to region_rules_extra`); got != tc.rule {
				t.Errorf("%s: %s", tc.reason, err)
			}
		})
	}
}

func TestUnreachableErrorsNameTheRegion(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	cases := map[string]struct {
		reason string
		err    error
		want   string
		word   string
		after  time.Duration
	}{
		"Refused": {
			reason: "without the URL that was asked for", err: &url.Error{Op: "Get", URL: "https://10.0.0.1/api", Err: refused}, word: "tcp",
			want: "cannot list Pod objects: cloud region east is unreachable (tcp: 10.0.0.1:6443: connection refused)",
		},
		"HeldBack": {
			reason: "the last failure, and when the next request goes out", err: &url.Error{Op: "Get", URL: "https://10.0.0.1/api", Err: &breaker.OpenError{After: time.Minute, Cause: "no route"}},
			word: "breaker", after: time.Minute, want: "cannot list Pod objects: cloud region east is unreachable (no route)",
		},
		"Replaced": {
			reason: "it can be asked again at once", err: errReplaced, word: "replaced",
			want: "cannot list Pod objects: cloud region east has a new access, or was deregistered",
		},
		"Unavailable": {
			reason: "an answer may say as much", err: apierrors.NewTimeoutError("etcd is away", 7), word: "unavailable", after: 7 * time.Second,
			want: "cannot list Pod objects: cloud region east is unreachable (unavailable: Timeout: etcd is away)",
		},
		"Crowded": {reason: "ours alone", err: errCrowded, word: "crowded", want: "cannot list Pod objects: cloud region east is unreachable (crowded: " + errCrowded.Error() + ")"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := region("east").fail(t.Context(), "list", "Pod objects", tc.err)
			if err.Error() != tc.want || nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != tc.word || nf.RetryAfterOf(err) != tc.after {
				t.Errorf("%s: %v (%s, %s, after %s), want %s", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err), nf.RetryAfterOf(err), tc.want)
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: the cause is not in the chain", tc.reason)
			}
		})
	}
}
