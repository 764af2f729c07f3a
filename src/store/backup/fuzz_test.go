package backup_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/backup"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
)

// FuzzRestore restores whatever is inside the encryption: it is refused before
// anything is written, or a backup of what was restored holds the same.
func FuzzRestore(f *testing.F) {
	identity, err := age.GenerateX25519Identity()
	must(f, err)
	const head = `{"format":"k8splugin-backup","version":1,"schema":2,"created":"2026-01-02T03:04:05Z"}` + "\n"
	const a, b = `{"key":"a","value":"eA=="}` + "\n", `{"key":"b","value":""}` + "\n"
	for _, seed := range []string{"", "\n", head, head + a, head + a + b, head + b + a, a} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Add(whole(head, a, b), false)
	f.Fuzz(func(t *testing.T, plain string, sealWell bool) {
		if sealWell {
			plain = whole(slices.Collect(strings.Lines(plain))...) // the fuzzer does not find sums by itself
		}
		raw := memory.New()
		config := backup.Config{KV: raw, Raw: raw, Clock: clock}
		read, err := backup.Restore(t.Context(), config, bytes.NewReader(encrypt(t, plain, identity.Recipient())), identity)
		if err != nil {
			if kind := nf.KindOf(err); kind != nf.Invalid && kind != nf.Unsupported {
				t.Errorf("the error is %v (%s)", err, kind)
			}
			if found := keys(t, raw); len(found) > 0 {
				t.Errorf("what was refused (%v) has left %v", err, found)
			}
			return
		}
		if n := len(keys(t, raw)) - 1; n != read.Records {
			t.Errorf("%d records are said to be restored, and %d are there", read.Records, n)
		}
		if _, err := raw.Get(t.Context(), schema.RestoreKey); err == nil {
			t.Error("the mark of a restore is left")
		}
		var out bytes.Buffer
		written, err := backup.Write(t.Context(), config, &out, identity.Recipient())
		must(t, err)
		if written.Records != read.Records || written.Bytes != read.Bytes || written.Schema != read.Schema {
			t.Errorf("%+v was restored, and a backup of it is %+v", read, written)
		}
	})
}
