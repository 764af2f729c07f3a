package migration_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/migration"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := migration.NewReport(true, "definition", "instance")
	r.Add(migration.Item{Kind: "definition", Name: "fw 1", Result: migration.Imported}, migration.Item{
		Kind: "instance", Name: "sad\x1b[31m", Result: migration.Failed, Reason: "two\nlines", Warnings: []string{"odd"},
	})
	r.Warn("and %d more", 2)
	var out bytes.Buffer
	if err := r.Print(&out, false); err != nil {
		t.Fatal(err)
	}
	want := `KIND         NAME       RESULT              REASON
definition   fw 1       would be imported   
instance     sad�[31m   failed              two lines
warning: instance sad�[31m: odd
warning: and 2 more
definition: 1 would be imported
instance: 1 failed
Dry run: nothing was written.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}
	if err := r.Err(); err == nil || cli.ExitCode(err) != 1 {
		t.Errorf("the error is %v, want one with code 1", err)
	}
}
