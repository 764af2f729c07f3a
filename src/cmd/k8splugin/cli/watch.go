package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// retries are the pauses before an operation's broken event stream is opened
// again: about half a minute in all, so that a server may restart.
func retries() []time.Duration {
	const s = time.Second
	return []time.Duration{s / 4, s / 2, s, 2 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s}
}

// until says when an operation has come as far as somebody waits for.
type until func(operation) bool

func ended(op operation) bool   { return op.State.Final() }
func applied(op operation) bool { return op.State.Final() || !op.Applied.IsZero() && !op.Undoing }

// follow waits for an operation, telling view of its progress. An operation
// that ended badly is an error. When the context ends first the operation goes
// on, and the error says so.
func (s *session) follow(ctx context.Context, c *client, id string, done until, view *progress) (operation, error) {
	var op operation
	err := observe(s, view, c.watch(ctx, id, done), func(now operation) { op = now; view.show(now) })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return op, &exitError{exitInterrupted, fmt.Errorf("interrupted; operation %s goes on\n"+
			"  to follow it: k8splugin operation watch %s\n  to stop it:   k8splugin operation cancel %s", id, id, id)}
	default:
		return op, fmt.Errorf("cannot follow operation %s, which may go on: %w", id, err)
	}
	for _, w := range op.Warnings {
		s.warn(w)
	}
	return op, op.outcome()
}

// observe hands to show what a stream brings, up to its end or its error, and
// redraws the progress as time goes by.
func observe[T any](s *session, view *progress, news iter.Seq2[T, error], show func(T)) error {
	var g errgroup.Group
	feed := make(chan T)
	g.Go(func() error {
		defer close(feed)
		for n, err := range news {
			if err != nil {
				return err
			}
			feed <- n // it is read until the channel is closed
		}
		return nil
	})
	tick := time.NewTicker(s.redraw)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			view.redraw()
		case n, open := <-feed:
			if !open {
				return g.Wait()
			}
			show(n)
		}
	}
}

// watch yields each state of an operation up to the one that is waited for. A
// stream that breaks before it is opened again, with a pause, as long as the
// client's retries last.
func (c *client) watch(ctx context.Context, id string, done until) iter.Seq2[operation, error] {
	return func(yield func(operation, error) bool) {
		for failed := 0; ; failed++ {
			got, end, err := c.relay(ctx, id, done, yield)
			if end {
				return
			}
			if got {
				failed = 0
			}
			if refused(err) || failed >= len(c.retries) || !pause(ctx, c.retries[failed]) {
				yield(operation{}, err)
				return
			}
		}
	}
}

// relay yields what one event stream brings. It reports whether that was
// anything, and whether there is an end to it; if not, err says why.
func (c *client) relay(ctx context.Context, id string, done until, yield func(operation, error) bool) (got, end bool, err error) {
	for op, err := range c.stream(ctx, id) {
		if err != nil {
			return got, false, err
		}
		got = true
		if !yield(op, nil) || done(op) {
			return got, true, nil
		}
	}
	return got, false, &exitError{exitNoServer, errors.New("the server ended the stream of events too early")}
}

// refused reports whether asking again would get the same answer.
func refused(err error) bool {
	p, ok := errors.AsType[*problem](err)
	return ok && p.Status < http.StatusInternalServerError
}

// pause waits, and reports false when the context ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// stream reads one event stream of an operation.
func (c *client) stream(ctx context.Context, id string) iter.Seq2[operation, error] {
	return func(yield func(operation, error) bool) {
		res, err := c.open(ctx, request{
			method: http.MethodGet,
			path:   at("operations", id, "events"),
			header: map[string]string{"Accept": "text/event-stream"},
		})
		if err != nil {
			yield(operation{}, err)
			return
		}
		defer res.Body.Close()
		for e, err := range events(res.Body) {
			if err != nil {
				yield(operation{}, c.lost(ctx, err))
				return
			}
			if e.name != "operation" {
				continue
			}
			op := operation{sent: e.data}
			if err := json.Unmarshal(e.data, &op); err != nil {
				yield(operation{}, &exitError{exitNoServer, fmt.Errorf("cannot read the server's event: %w", err)})
				return
			}
			if !yield(op, nil) {
				return
			}
		}
	}
}

// outcome is nil for an operation that succeeded or goes on, and tells why
// otherwise.
func (op operation) outcome() error {
	switch {
	case !op.State.Final() || op.State == nf.Succeeded:
		return nil
	case op.Failure == nil:
		return &problem{Kind: nf.Failed, Detail: "operation " + op.ID + " was " + string(op.State), Operation: op.ID}
	}
	detail := op.Failure.Message
	if op.Failure.Step != "" {
		detail = op.Failure.Step + ": " + detail
	}
	return &problem{Kind: op.Failure.Kind, Detail: detail, Errors: op.Failure.Errors, Operation: op.ID}
}

func (s *session) warn(text string) { fmt.Fprintf(s.Stderr, "warning: %s\n", printable(text)) }
