package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The exit codes of the program.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitNoServer    = 5
	exitNoRegion    = 6
	exitTimeout     = 7
	exitNotAllowed  = 8
	exitInterrupted = 130
)

const exitCodesHelp = `The exit codes of k8splugin:

    0  it worked; for diff: nothing would change
    1  it failed: the server refused the input, the operation failed or was
       cancelled, lint found something wrong, or diff found a difference
    2  the command line itself is wrong
    3  the thing that was named does not exist
    4  a conflict: the name is taken, the thing is in use, another operation is
       running, or what would be deleted must be confirmed
    5  the server cannot be reached, or what answers is not the server
    6  the server cannot reach the cloud region or its own store
    7  a timeout: the operation did not end in its time
    8  the server does not let you: it does not know who asks, who asks may not,
       or does so too often
  130  interrupted; an operation that was waited for goes on
`

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp}
}

// errSilent ends a command with an exit code of 1 and nothing to say: what
// there was to say is on standard output.
var errSilent = errors.New("")

// exitError is an error that decides the exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// several are the errors of a command that does the same to several things. Its
// exit code is that of the first.
type several []error

func (s several) Error() string   { return errors.Join(s...).Error() }
func (s several) Unwrap() []error { return s }

// orNil returns nil when there are none.
func (s several) orNil() error {
	if len(s) == 0 {
		return nil
	}
	return s
}

// Usage marks an error as one of the command line itself.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

func usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// ExitCode returns the program's exit code for the error of a command, as
// `k8splugin help exit-codes` documents them.
func ExitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if all, ok := errors.AsType[several](err); ok {
		return ExitCode(all[0])
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if p, ok := errors.AsType[*problem](err); ok {
		return codeOf(p.Kind)
	}
	return codeOf(nf.KindOf(err))
}

func codeOf(kind nf.Kind) int {
	switch kind {
	case nf.NotFound:
		return exitNotFound
	case nf.Exists, nf.Conflict, nf.Busy:
		return exitConflict
	case nf.Unreachable:
		return exitNoRegion
	case nf.Timeout:
		return exitTimeout
	case nf.Unauthenticated, nf.Forbidden, nf.TooMany:
		return exitNotAllowed
	case nf.Internal, nf.Invalid, nf.Unsupported, nf.TooLarge, nf.Failed, nf.Cancelled:
	}
	return exitFailed
}

// Report prints an error of a command: what went wrong, a line for each thing
// that is wrong with the input, and where to look further. It prints nothing
// for an error that has nothing to add to what was printed already.
func Report(w io.Writer, err error) {
	if err == nil || errors.Is(err, errSilent) {
		return
	}
	if all, ok := errors.AsType[several](err); ok {
		for _, one := range all {
			Report(w, one)
		}
		return
	}
	p, ok := errors.AsType[*problem](err)
	if !ok {
		fmt.Fprintf(w, "error: %s\n", printable(err.Error()))
		return
	}
	// A detail may end with the violations, which get lines of their own.
	fmt.Fprintf(w, "error: %s\n", printable(strings.TrimSuffix(err.Error(), ": "+p.Errors.Error())))
	for _, v := range p.Errors {
		fmt.Fprintf(w, "  %s\n", printable(v.String()))
	}
	if p.Confirm != "" {
		fmt.Fprintf(w, "  to confirm that: --confirm %s\n", printable(p.Confirm))
	}
	if p.Operation != "" {
		fmt.Fprintf(w, "  see: k8splugin operation show %s\n", printable(p.Operation))
	}
	if p.Status >= 500 && p.RequestID != "" {
		fmt.Fprintf(w, "  request: %s\n", printable(p.RequestID))
	}
}
