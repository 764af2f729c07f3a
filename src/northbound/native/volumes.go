package native

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// VolumeStatus returns a volume as its region has it.
type VolumeStatus func(ctx context.Context, v nf.Volume) (nf.VolumeStatus, error)

// volumeForm is the form of volumes.
func volumeForm(status VolumeStatus) form {
	return form{
		filters: []string{nf.AttributeRegion, nf.AttributeState, nf.AttributeProject},
		path:    wire.VolumePath,
		read: func(r *http.Request) (nf.SharedRequest, any, error) {
			body, key, err := read[wire.VolumeCreate](r)
			if err != nil {
				return nf.SharedRequest{}, nil, err
			}
			v := nf.Volume{Name: body.Name, Region: body.Region, Project: body.Project}
			err = editVolume(&v, body.VolumeEdit)
			return nf.SharedRequest{Resource: v, Holder: body.Holder, Key: key}, body.Timeout, err
		},
		edit: func(change patch, v *nf.Volume) error {
			edit, err := apply(change, wire.VolumeEditOf(*v, specOf(*v)))
			if err != nil {
				return err
			}
			return editVolume(v, edit)
		},
		item: func(v nf.Volume) any { return wire.VolumeOf(v, specOf(v)) },
		show: func(ctx context.Context, v nf.Volume, u use, op string) any {
			out := wire.VolumeOf(v, specOf(v)).With(u.count, u.users)
			if there, err := status(ctx, v); err == nil { // without its region, the record is the answer
				out = out.As(there)
			}
			if op != "" {
				out.Operation, out.Links["operation"] = op, wire.OperationPath(op)
			}
			return out
		},
		used: func(op nf.Operation) bool { return op.Volume.Used },
	}
}

// specOf returns the spec of a volume. A stored one is never malformed.
func specOf(v nf.Volume) nf.VolumeSpec {
	var spec nf.VolumeSpec
	_ = json.Unmarshal(v.Spec, &spec)
	return spec
}

func editVolume(v *nf.Volume, e wire.VolumeEdit) (err error) {
	v.Keep, v.Description, v.Labels = e.Keep, e.Description, e.Labels
	v.Spec, err = json.Marshal(e.Spec())
	return err
}
