package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// retries returns the pauses before a broken event stream is reopened: about 30
// s in total, enough for a server restart.
func retries() []time.Duration {
	const s = time.Second
	return []time.Duration{s / 4, s / 2, s, 2 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s}
}

// waitCondition reports whether an operation has reached the state to wait for.
type waitCondition func(operation) bool

func ended(op operation) bool   { return op.State.Final() }
func applied(op operation) bool { return op.State.Final() || !op.Applied.IsZero() && !op.Undoing }

// news is an update of an operation: its state, or an entry of its log.
type news struct {
	operation *operation
	event     siteEvent
}

// watcher waits for operations.
type watcher struct {
	out    *printer
	redraw time.Duration // interval of redraws on a terminal
}

// follow waits for an operation and displays its progress. From requests its event
// stream. It returns an error if the operation failed. If the context ends first, the operation
// continues, and the error says so.
func (w watcher) follow(ctx context.Context, c *client, from request, done waitCondition, view *progress) (operation, error) {
	id := idIn(strings.TrimSuffix(from.path, "/events"))
	var op operation
	err := w.observe(view, c.watch(ctx, from, done), func(n news) {
		if n.operation == nil {
			view.event(n.event)
			return
		}
		op = *n.operation
		view.show(op)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return op, &exitError{exitInterrupted, fmt.Errorf("interrupted; operation %s continues\n"+
			"  to watch it:  k8splugin operation watch %s\n  to cancel it: k8splugin operation cancel %s", id, id, id)}
	default:
		return op, fmt.Errorf("cannot watch operation %s, which may continue: %w", id, err)
	}
	w.out.warn(op.Warnings...)
	return op, op.outcome()
}

// observe passes the updates of a stream to show until the stream ends or
// fails, and redraws the progress periodically.
func (w watcher) observe(view *progress, stream iter.Seq2[news, error], show func(news)) error {
	var g errgroup.Group
	feed := make(chan news)
	g.Go(func() error {
		defer close(feed)
		for n, err := range stream {
			if err != nil {
				return err
			}
			feed <- n // the loop reads until the channel is closed
		}
		return nil
	})
	tick := time.NewTicker(w.redraw)
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

// watch yields the updates of an operation until the state that is waited for. A
// stream that breaks before is reopened after a pause, as often as the client
// has retries. Each entry of the log is yielded once.
func (c *client) watch(ctx context.Context, from request, done waitCondition) iter.Seq2[news, error] {
	return func(yield func(news, error) bool) {
		w := watch{done: done, yield: yield}
		for failed := 0; ; failed++ {
			got, err := w.relay(c.stream(ctx, from))
			if w.ended {
				return
			}
			if got {
				failed = 0
			}
			if refused(err) || failed >= len(c.retries) || !pause(ctx, c.retries[failed]) {
				yield(news{}, err)
				return
			}
		}
	}
}

// watch merges the event streams of one operation.
type watch struct {
	done      waitCondition
	yield     func(news, error) bool
	lastEntry int  // number of the last entry of the log that was yielded
	ended     bool // the state has come, or the caller has stopped the iteration
}

// relay yields the updates from one event stream. It reports whether there were
// any; if the watch has not ended, err says why.
func (w *watch) relay(stream iter.Seq2[news, error]) (got bool, err error) {
	for n, err := range stream {
		if err != nil {
			return got, err
		}
		got = true
		switch {
		case n.operation != nil:
			w.ended = w.done(*n.operation)
		case n.event.Number <= w.lastEntry:
			continue
		default:
			w.lastEntry = n.event.Number
		}
		if !w.yield(n, nil) {
			w.ended = true
		}
		if w.ended {
			return got, nil
		}
	}
	return got, &exitError{exitNoServer, errors.New("the server closed the event stream too early")}
}

// refused reports whether a retry would get the same response.
func refused(err error) bool {
	p, ok := errors.AsType[*problem](err)
	return ok && p.Status < http.StatusInternalServerError
}

// pause waits, and returns false if the context ends first.
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
func (c *client) stream(ctx context.Context, from request) iter.Seq2[news, error] {
	return func(yield func(news, error) bool) {
		from.header.Set("Accept", "text/event-stream")
		res, err := c.open(ctx, from)
		if err != nil {
			yield(news{}, err)
			return
		}
		defer res.Body.Close()
		for e, err := range events(res.Body) {
			if err != nil {
				yield(news{}, c.lost(ctx, err))
				return
			}
			n, known, err := newsOf(e)
			if err != nil {
				yield(news{}, &exitError{exitNoServer, fmt.Errorf("cannot read the server's event: %w", err)})
				return
			}
			if known && !yield(n, nil) {
				return
			}
		}
	}
}

// newsOf decodes an event. It returns false for an event of an unknown name.
func newsOf(e event) (n news, known bool, err error) {
	switch e.name {
	case "operation":
		n.operation = &operation{sent: e.data}
		return n, true, unmarshal(e.data, n.operation)
	case "log":
		return n, true, unmarshal(e.data, &n.event)
	}
	return n, false, nil
}

// outcome returns nil if an operation succeeded or is still running, and
// otherwise its failure. The exit code says that an accepted operation failed; only a
// timeout and an unreachable region have codes of their own.
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
	err := &problem{Kind: op.Failure.Kind, Detail: detail, Operation: op.ID}
	if code := codeOf(err.Kind); code != exitTimeout && code != exitNoRegion {
		return &exitError{exitFailed, err}
	}
	return err
}
