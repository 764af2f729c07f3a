package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// siteOperation is an operation of a site.
type siteOperation struct {
	ID       string            `json:"operation_id"`
	Site     string            `json:"site_id"`
	Verb     string            `json:"verb"`
	State    nf.OperationState `json:"state"`
	Attempts int               `json:"attempts"`
	Steps    []step            `json:"steps"`
	Failure  *failure          `json:"failure"`
	Warnings []string          `json:"warnings"`
	Accepted time.Time         `json:"accepted_at"`
	Finished time.Time         `json:"finished_at"`

	sent []byte // as the server said it
}

// siteEvent is one thing that happened in it.
type siteEvent struct {
	Number  int              `json:"number"`
	Kind    nf.SiteEventKind `json:"kind"`
	Play    string           `json:"play"`
	Task    string           `json:"task"`
	Host    string           `json:"host"`
	Message string           `json:"message"`
}

// siteNews is what is new: the operation, or an event.
type siteNews struct {
	operation *siteOperation
	event     siteEvent
}

// progress is the operation as the display of any operation takes it.
func (op siteOperation) progress() operation {
	return operation{
		ID: op.ID, Instance: "site " + op.Site, Verb: nf.Verb(op.Verb), State: op.State, Attempts: op.Attempts, Steps: op.Steps,
		Failure: op.Failure, Warnings: op.Warnings, Accepted: op.Accepted, Finished: op.Finished, sent: op.sent,
	}
}

// line says what an event tells; nothing of one that is of no interest to who
// reads along.
func (e siteEvent) line() string {
	text := e.Task
	switch {
	case text == "" && e.Kind == nf.EventPlay:
		text = e.Play
	case e.Message != "" && text != "":
		text += ": " + e.Message
	case text == "":
		text = e.Message
	}
	switch e.Kind {
	case nf.EventSkipped, nf.EventTask: // what becomes of it is told
		return ""
	case nf.EventLine, nf.EventNote:
		return strings.TrimSpace("  " + e.Host + " " + text)
	case nf.EventPlay, nf.EventOK, nf.EventChanged, nf.EventRetry, nf.EventIgnored, nf.EventFailed, nf.EventUnreachable, nf.EventStats:
	}
	return strings.Join(strings.Fields(e.Host+" "+string(e.Kind)+" "+text), " ")
}

func siteWatch(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "watch NAME [OPERATION]",
		Short: "Follow what is done to a site; its outcome is the exit code",
		Long: `Follow what is done to a site to its end; its outcome is the exit code.

It is the site's last operation unless another is named. With -o json or yaml
each state of the operation is a document on standard output. An interrupt ends
the watching only: the operation goes on.`,
		Args:              func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, cobra.RangeArgs(1, 2), args) },
		ValidArgsFunction: s.ids(sites(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			op, err := c.siteOperation(ctx, args)
			if err != nil {
				return err
			}
			view := s.progress()
			if !s.output.people() {
				view = &progress{report: s.report}
			}
			return s.followSite(ctx, c, args[0], op, view)
		}),
	}
}

func siteCancel(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "cancel NAME [OPERATION]",
		Short:             "Stop what is done to a site",
		Long:              "Stop what is done to a site: its last operation unless another is named. What was done stays.",
		Args:              func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, cobra.RangeArgs(1, 2), args) },
		ValidArgsFunction: s.ids(sites(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			op, err := c.siteOperation(ctx, args)
			if err != nil {
				return err
			}
			a, err := c.call(ctx, request{method: http.MethodPost, path: at("sites", args[0], "operations", op, "cancel")})
			if err != nil {
				return ofSite(err)
			}
			return printOne(s, a, siteOperationColumns(s))
		}),
	}
}

func siteOperationColumns(s *session) []column[siteOperation] {
	return []column[siteOperation]{
		{"ID", false, func(op siteOperation) string { return op.ID }},
		{"VERB", false, func(op siteOperation) string { return op.Verb }},
		{"SITE", false, func(op siteOperation) string { return op.Site }},
		{"STATE", false, func(op siteOperation) string { return string(op.State) }},
		{"AGE", false, func(op siteOperation) string { return s.age(op.Accepted) }},
	}
}

// siteOperation returns the operation that the arguments name, or the site's last
// one.
func (c *client) siteOperation(ctx context.Context, args []string) (string, error) {
	if len(args) > 1 {
		return args[1], nil
	}
	a, err := c.get(ctx, at("sites", args[0]), nil)
	if err != nil {
		return "", err
	}
	var in site
	err = a.decode(&in)
	return in.Operation, err
}

// followSite waits for an operation of a site, telling view of its progress. One
// that ended badly is an error. When the context ends first the operation goes
// on, and the error says so.
func (s *session) followSite(ctx context.Context, c *client, name, id string, view *progress) error {
	var op siteOperation
	err := observe(s, view, c.watchSite(ctx, name, id), func(n siteNews) {
		if n.operation == nil {
			view.event(n.event)
			return
		}
		op = *n.operation
		view.show(op.progress())
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, fmt.Errorf("interrupted; operation %s goes on\n"+
			"  to follow it: k8splugin site watch %s %s\n  to stop it:   k8splugin site cancel %s %s", id, name, id, name, id)}
	default:
		return fmt.Errorf("cannot follow operation %s, which may go on: %w", id, err)
	}
	for _, w := range op.Warnings {
		s.warn(w)
	}
	return ofSite(op.progress().outcome())
}

// event prints what an event tells, where lines are printed.
func (p *progress) event(e siteEvent) {
	if line := e.line(); line != "" && !p.live && p.report == nil {
		fmt.Fprintln(p.out, flat(line))
	}
}

// watchSite yields what is new of an operation up to its end. A stream that
// breaks before is opened again, with a pause, as long as the client's retries
// last; what was told is not told again.
func (c *client) watchSite(ctx context.Context, name, id string) iter.Seq2[siteNews, error] {
	return func(yield func(siteNews, error) bool) {
		r := siteReader{yield: yield}
		for failed := 0; ; failed++ {
			before := r.told
			err := c.streamSite(ctx, name, id, r.take)
			if r.ended {
				return
			}
			if r.told > before {
				failed = 0
			}
			if refused(err) || failed >= len(c.retries) || !pause(ctx, c.retries[failed]) {
				yield(siteNews{}, err)
				return
			}
		}
	}
}

// siteReader hands on what several streams of one operation tell, each once.
type siteReader struct {
	yield func(siteNews, error) bool
	told  int  // number of the event that was told last
	ended bool // the operation has, or nobody wants to know any more
}

// take reports whether there is more to read.
func (r *siteReader) take(u siteNews) bool {
	switch {
	case u.operation != nil:
		r.ended = u.operation.State.Final()
	case u.event.Number <= r.told:
		return true
	default:
		r.told = u.event.Number
	}
	r.ended = !r.yield(u, nil) || r.ended
	return !r.ended
}

// streamSite reads one event stream until take says stop; its error says why it
// ended otherwise.
func (c *client) streamSite(ctx context.Context, name, id string, take func(siteNews) bool) error {
	res, err := c.open(ctx, request{
		method: http.MethodGet, path: at("sites", name, "operations", id, "events"), header: map[string]string{"Accept": "text/event-stream"},
	})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for e, err := range events(res.Body) {
		if err != nil {
			return c.lost(ctx, err)
		}
		u, err := siteNewsOf(e)
		if err != nil {
			return &exitError{exitNoServer, fmt.Errorf("cannot read the server's event: %w", err)}
		}
		if !take(u) {
			return nil
		}
	}
	return &exitError{exitNoServer, errors.New("the server ended the stream of events too early")}
}

func siteNewsOf(e event) (siteNews, error) {
	if e.name == "log" {
		var u siteNews
		err := json.Unmarshal(e.data, &u.event)
		return u, err
	}
	op := siteOperation{sent: e.data}
	err := json.Unmarshal(e.data, &op)
	return siteNews{operation: &op}, err
}
