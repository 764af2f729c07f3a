package nf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestOperationErr records the failure of an operation, reads the record, and
// checks the error that a client gets.
func TestOperationErr(t *testing.T) {
	t.Parallel()
	late := errors.New("its deadline has passed")
	quota := &nf.Error{Kind: nf.Failed, Op: "apply", Subject: "Deployment web", Reason: nf.ReasonQuota, Err: late}
	violations := nf.Violations{nf.Violation{Field: "spec"}.Saying(nf.Textf("is not %s", nf.Mention("vnf-2")))}
	cases := map[string]struct {
		reason string
		state  nf.OperationState
		cause  error // nil: the record has no failure
		want   string
		kind   nf.Kind
	}{
		"Succeeded": {"an operation that succeeded has no error", nf.Succeeded, nil, "", 0},
		"Running":   {"neither has one that has not ended, whatever it undoes", nf.Running, quota, "", 0},
		"Step":      {"the error of a step follows the operation's action and object", nf.OperationFailed, quota, "cannot upgrade VNF instance vnf-1: cannot apply Deployment web: its deadline has passed", nf.Failed},
		"Whole":     {"an error that begins with them is complete", nf.OperationFailed, nf.E(nf.Timeout, "upgrade", "VNF instance vnf-1", late), "cannot upgrade VNF instance vnf-1: its deadline has passed", nf.Timeout},
		"Mentioning": {
			"also if it mentions instances", nf.OperationFailed, nf.E(nf.Timeout, "upgrade", "VNF instance vnf-1", nf.Errorf("no %s", nf.Mention("vnf-2"))),
			"cannot upgrade VNF instance vnf-1: no VNF instance vnf-2", nf.Timeout,
		},
		"Inner": {
			"but not if other words come first", nf.OperationFailed, fmt.Errorf("cannot hold it: %w", nf.E(nf.Timeout, "upgrade", "VNF instance vnf-1", late)),
			"cannot upgrade VNF instance vnf-1: cannot hold it: cannot upgrade VNF instance vnf-1: its deadline has passed", nf.Timeout,
		},
		"Other instance": {
			"nor if it is about another instance", nf.OperationFailed, nf.E(nf.Timeout, "upgrade", "VNF instance vnf-2", late),
			"cannot upgrade VNF instance vnf-1: cannot upgrade VNF instance vnf-2: its deadline has passed", nf.Timeout,
		},
		"Violations": {"violations are kept", nf.OperationFailed, violations, "cannot upgrade VNF instance vnf-1: spec: is not VNF instance vnf-2", nf.Invalid},
		"Unrecorded": {"a failure without a record is one, too", nf.OperationFailed, nil, "cannot upgrade VNF instance vnf-1: the operation failed", nf.Failed},
		"Cancelled":  {"so is a cancellation", nf.OperationCancelled, nil, "cannot upgrade VNF instance vnf-1: the operation was cancelled", nf.Cancelled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op := nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}, Verb: nf.Upgrade, State: tc.state}
			if tc.cause != nil {
				op.Failure = nf.FailureOf("apply 1/1", tc.cause)
			}
			record, err := json.Marshal(op)
			var read nf.Operation
			if err := errors.Join(err, json.Unmarshal(record, &read)); err != nil {
				t.Fatal(err)
			}
			got := read.Err()
			if tc.want == "" {
				if got != nil {
					t.Errorf("%s: %v", tc.reason, got)
				}
				return
			}
			if got == nil || got.Error() != tc.want || nf.KindOf(got) != tc.kind || nf.ReasonOf(got) != nf.ReasonOf(tc.cause) || nf.OperationOf(got) != "op-1" {
				t.Errorf("%s: %v of kind %s, reason %q, operation %q; want %q of kind %s", tc.reason, got, nf.KindOf(got), nf.ReasonOf(got), nf.OperationOf(got), tc.want, tc.kind)
			}
			if diff := cmp.Diff(nf.TextOf(tc.cause).Mentions, nf.TextOf(got).Mentions); diff != "" {
				t.Errorf("%s: the mentions (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(nf.ViolationsOf(tc.cause), nf.ViolationsOf(got)); diff != "" {
				t.Errorf("%s: the violations (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
