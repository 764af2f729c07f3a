package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
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

    0  success; for diff: no differences
    1  failure: the server rejected the input, the operation failed or was
       cancelled, a file cannot be read or is invalid, lint or a check found
       errors, a test failed, diff found differences, or status found problems
    2  invalid command line, environment or configuration file
    3  not found: the named object does not exist
    4  conflict: the name is taken, the object is in use, another operation is
       running, or deletions must be confirmed
    5  the server, or the provider of a login, is unreachable, or the response is
       not from a k8splugin server
    6  the server cannot reach the cloud region or its own store
    7  timeout: the operation, or what the command waits for, did not end in time
    8  access denied: authentication failed, a permission is missing, or there
       were too many requests
  130  interrupted; an operation that the command waited for continues

A command on several objects continues after an error; the first error decides. An
operation that was accepted and fails gives 1, 6 or 7.
`

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "Meaning of the exit codes", Long: exitCodesHelp}
}

// errSilent ends a command with exit code 1 and no message, because the output
// on standard output is enough.
var errSilent = errors.New("")

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// advisedError is an error with a line that says what to do.
type advisedError struct {
	err    error
	advice string
}

func (e advisedError) Error() string { return e.err.Error() }
func (e advisedError) Unwrap() error { return e.err }

// multiError holds the errors of a command on several objects. Its exit code is
// that of the first error.
type multiError []error

func (s multiError) Error() string   { return errors.Join(s...).Error() }
func (s multiError) Unwrap() []error { return s }

// orNil returns nil if there are no errors.
func (s multiError) orNil() error {
	if len(s) == 0 {
		return nil
	}
	return s
}

// Usage marks an error as one of the command line.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// FlagError is the error of wrong flags. If the command does not exist, that is the error:
// its flags are then unknown, too.
func FlagError(cmd *cobra.Command, err error) error {
	if given := cmd.Flags().Args(); cmd.HasSubCommands() && len(given) > 0 && err != nil {
		return NoSuchCommand(cmd, given)
	}
	return Usage(err)
}

func usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// ExitCode returns the program's exit code for a command's error, as `k8splugin
// help exit-codes` documents them.
func ExitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if all, ok := errors.AsType[multiError](err); ok {
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
	case nf.Unauthenticated, nf.Forbidden, nf.TooManyRequests:
		return exitNotAllowed
	case nf.Internal, nf.Invalid, nf.Unsupported, nf.TooLarge, nf.Failed, nf.Cancelled:
	}
	return exitFailed
}

// asJSON is an error of a command whose output is JSON.
type asJSON struct{ err error }

func (e asJSON) Error() string { return e.err.Error() }
func (e asJSON) Unwrap() error { return e.err }

// reportJSON prints an error as a problem document (RFC 9457): that of the server, or
// one with the error's text. It has the exit code, too.
func reportJSON(w io.Writer, err error) {
	var document any
	if p, ok := errors.AsType[*problem](err); ok {
		document = struct {
			wire.Problem

			Code int `json:"exit_code"`
		}{wire.Problem(*p), ExitCode(err)}
	} else {
		document = struct {
			Detail string           `json:"detail"`
			Errors []wire.Violation `json:"errors,omitempty"`
			Code   int              `json:"exit_code"`
		}{err.Error(), wire.ViolationsOf(nf.ViolationsOf(err)), ExitCode(err)}
	}
	fmt.Fprintf(w, "%s\n", jsonOf(document))
}

// Listed adds a text to an error. If the error has violations, Report prints the text, and
// each of them on a line.
func Listed(text string, err error) error {
	if found := nf.ViolationsOf(err); len(found) > 0 {
		return lintError{text, found}
	}
	return fmt.Errorf("%s: %w", text, err)
}

// Report prints a command's error, and the command or the id that gives details.
// It prints a line for each violation that lint found; those that the server
// found are in the text. It prints nothing if the output is enough.
func Report(w io.Writer, err error) {
	if err == nil || errors.Is(err, errSilent) {
		return
	}
	if all, ok := errors.AsType[multiError](err); ok {
		for _, one := range all {
			Report(w, one)
		}
		return
	}
	if document, ok := errors.AsType[asJSON](err); ok {
		reportJSON(w, document.err)
		return
	}
	fmt.Fprintf(w, "error: %s\n", printable(err.Error()))
	if lint, ok := errors.AsType[lintError](err); ok {
		for _, v := range lint.found {
			fmt.Fprintf(w, "  %s\n", printable(v.String()))
		}
	}
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return
	}
	if advice, ok := errors.AsType[advisedError](err); ok {
		fmt.Fprintf(w, "  %s\n", advice.advice)
	}
	if p.Confirm != "" {
		fmt.Fprintf(w, "  to confirm: --confirm %s\n", printable(p.Confirm))
	}
	if p.Operation != "" {
		fmt.Fprintf(w, "  see: k8splugin operation show %s\n", printable(p.Operation))
	}
	if p.Status >= 500 && p.RequestID != "" {
		fmt.Fprintf(w, "  request: %s\n", printable(p.RequestID))
	}
}
