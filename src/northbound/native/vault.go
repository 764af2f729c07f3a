package native

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Vault is what the API asks of the sealed store.
type Vault interface {
	// KeyStatus tells which keys there are and what they seal.
	KeyStatus(ctx context.Context) (nf.KeyStatus, error)
	// Reseal seals every record with the primary key, and tells the same.
	Reseal(ctx context.Context) (nf.KeyStatus, error)
	// Backup writes everything in the store, for the age recipient alone;
	// nf.Invalid, before anything is written, when that is none.
	Backup(ctx context.Context, recipient string, w io.Writer) error
}

// keys are the keys of the store as clients see them.
type keys struct {
	Primary string         `json:"primary"`
	Records map[string]int `json:"records"`
}

// answerKeys answers with what the vault says of the keys.
func (a *API) answerKeys(w http.ResponseWriter, r *http.Request, ask func(Vault, context.Context) (nf.KeyStatus, error)) error {
	if a.cfg.Vault == nil {
		return nf.E(nf.NotFound, "read", "the keys", errors.New("the store of this service is not sealed"))
	}
	status, err := ask(a.cfg.Vault, r.Context())
	if err != nil {
		return err
	}
	if status.Records == nil {
		status.Records = map[string]int{} // {} in JSON
	}
	return northbound.Answer(w, http.StatusOK, keys{Primary: status.Primary, Records: status.Records})
}

func (a *API) getKeys(w http.ResponseWriter, r *http.Request) error {
	return a.answerKeys(w, r, Vault.KeyStatus)
}

func (a *API) reseal(w http.ResponseWriter, r *http.Request) error {
	return a.answerKeys(w, r, Vault.Reseal)
}

// backUp streams a backup. What goes wrong before its first byte is a problem
// like any other; later the connection is cut.
func (a *API) backUp(w http.ResponseWriter, r *http.Request) error {
	body, err := northbound.Decode[struct {
		Recipient string `json:"recipient"`
	}](r)
	if err != nil {
		return err
	}
	if a.cfg.Vault == nil {
		return nf.E(nf.NotFound, "take", "a backup", errors.New("this service keeps nothing"))
	}
	out := &download{w: w, name: "k8splugin-backup.age"}
	err = a.cfg.Vault.Backup(r.Context(), body.Recipient, out)
	if err != nil && out.begun {
		a.cfg.Logger.ErrorContext(r.Context(), "a backup was cut off", "error", err)
		panic(http.ErrAbortHandler) // half a backup must not look like a whole one
	}
	return err
}

// download is a file that is made while it is sent.
type download struct {
	w     http.ResponseWriter
	name  string
	begun bool
}

// Write sends a part; the first one begins the answer.
func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		d.begun = true
		h := d.w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
		h.Set("Cache-Control", "no-store")
		// It takes as long as there is much to send. A server that has no
		// deadlines has none to lift.
		_ = http.NewResponseController(d.w).SetWriteDeadline(time.Time{})
	}
	return d.w.Write(p)
}
