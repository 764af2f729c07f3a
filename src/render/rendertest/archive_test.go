package rendertest

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

func TestBuilders(t *testing.T) {
	files := map[string]string{"b/c": "two", "a": "", "d": "four"}
	want := render.Files{"b/c": []byte("two"), "a": {}, "d": []byte("four")}
	for name, build := range map[string]func(map[string]string) []byte{"zip": Zip, "tar": TarGz} {
		t.Run(name, func(t *testing.T) {
			archive := build(files)
			if !bytes.Equal(archive, build(files)) {
				t.Error("the same files give different archives")
			}
			got, _, err := render.Archive(archive, render.DefaultLimits())
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
