package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// translate returns an error of etcd with its kind. If the context has ended,
// it returns the error of the context, whatever etcd reports.
func translate(ctx context.Context, op, subject string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		if !errors.Is(err, ended) {
			err = ended
		}
		return nf.E(nf.Unreachable, op, subject, err)
	}
	kind, reason := nf.Unreachable, ""
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		kind = nf.TooLarge
	case errors.Is(err, rpctypes.ErrCompacted):
		reason = nf.ReasonCompacted
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrInvalidAuthToken),
		errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed):
		reason = nf.ReasonForbidden
	}
	return &nf.Error{Kind: kind, Op: op, Subject: subject, Reason: reason, Err: err}
}

// unusable returns the error for a data folder that etcd cannot use. It says what is
// wrong and what to do.
func unusable(dir string, cause error) error {
	reason, remedy := "damaged", "restore a backup into a new folder: k8splugin backup restore --data NEW_FOLDER --identity-file IDENTITY BACKUP"
	switch {
	case errors.Is(cause, syscall.ENOSPC), errors.Is(cause, syscall.EDQUOT):
		reason, remedy = "disk-full", "free space on the disk of the folder, and start again"
	case errors.Is(cause, fs.ErrPermission), errors.Is(cause, syscall.EROFS):
		reason, remedy = "permission", fmt.Sprintf("let user %d read and write all files in the folder, and start again", os.Getuid())
	case errors.Is(cause, syscall.ENOMEM):
		reason, remedy = "memory", "give the process more memory and address space (ulimit -v), and start again"
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		reason, remedy = "files", "let the process open more files (ulimit -n), and start again"
	}
	return &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "data folder " + strconv.Quote(dir), Reason: reason, Err: fmt.Errorf("%w; %s", cause, remedy)}
}
