package native

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// StoreAdmin administers the encrypted store.
type StoreAdmin interface {
	// KeyStatus returns the keys and the number of records encrypted with each.
	KeyStatus(ctx context.Context) (nf.KeyStatus, error)
	// Reencrypt encrypts every record with the primary key, and returns the new
	// status.
	Reencrypt(ctx context.Context) (nf.KeyStatus, error)
	// Backup writes the content of the store, encrypted for the age recipient.
	// It returns nf.Invalid before writing anything if the recipient is
	// invalid.
	Backup(ctx context.Context, recipient string, w io.Writer) error
}

// storeAdmin serves the administration of the encrypted store.
type storeAdmin struct {
	store  StoreAdmin
	logger *slog.Logger
}

func (sa storeAdmin) routes(on route) {
	on(http.MethodGet, "/keys", sa.keys)
	on(http.MethodPost, "/keys/reencrypt", sa.reencrypt)
	on(http.MethodPost, "/backup", sa.backUp)
}

// answer responds with the result of a call of the store.
func (sa storeAdmin) answer(w http.ResponseWriter, r *http.Request, ask func(StoreAdmin, context.Context) (nf.KeyStatus, error)) error {
	if sa.store == nil {
		return nf.E(nf.NotFound, "read", "the keys", errors.New("the store is not encrypted"))
	}
	status, err := ask(sa.store, r.Context())
	return respond(w, status, err, wire.KeysOf)
}

func (sa storeAdmin) keys(w http.ResponseWriter, r *http.Request) error {
	return sa.answer(w, r, StoreAdmin.KeyStatus)
}

func (sa storeAdmin) reencrypt(w http.ResponseWriter, r *http.Request) error {
	return sa.answer(w, r, StoreAdmin.Reencrypt)
}

// backUp streams a backup. An error before the first byte is answered as a
// problem; a later one aborts the connection.
func (sa storeAdmin) backUp(w http.ResponseWriter, r *http.Request) error {
	body, err := northbound.Decode[wire.BackupRequest](r)
	if err != nil {
		return err
	}
	if sa.store == nil {
		return nf.E(nf.NotFound, "create", "a backup", errors.New("the service has no persistent store"))
	}
	out := &download{w: w, name: "k8splugin-backup.age"}
	err = sa.store.Backup(r.Context(), body.Recipient, out)
	if err != nil && out.begun {
		sa.logger.ErrorContext(r.Context(), "failed to send a backup", "error", err)
		panic(http.ErrAbortHandler) // the client must not take a partial backup for a complete one
	}
	return err
}

// download is a file that is generated while it is sent.
type download struct {
	w     http.ResponseWriter
	name  string
	begun bool
}

// Write sends a part of the file. The first call starts the response.
func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		d.begun = true
		h := d.w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
		h.Set("Cache-Control", "no-store")
		// The transfer may take any time. A server without deadlines returns an
		// error, which is ignored.
		_ = http.NewResponseController(d.w).SetWriteDeadline(time.Time{})
	}
	return d.w.Write(p)
}
