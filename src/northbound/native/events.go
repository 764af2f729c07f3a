package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"
)

// followOperation streams an operation, with its log if it has one, as
// server-sent events until it has ended or the client disconnects. Periodic
// comments keep proxies from closing an idle stream.
func (ps operationPaths) follow(w http.ResponseWriter, r *http.Request, l ledger) error {
	id := mux.Vars(r)["operation_id"]
	s := &stream{w: w, out: http.NewResponseController(w)}
	for {
		more, err := ps.stream(r.Context(), l, id, s)
		switch {
		case err != nil && !s.begun:
			return err
		case err != nil:
			ps.logger.WarnContext(r.Context(), "event stream failed", "operation", id, "error", err)
			return nil
		case !more:
			return nil
		}
	}
}

// stream sends the updates of an operation for one heartbeat interval, and then
// a comment. It returns false if the stream has ended.
func (ps operationPaths) stream(ctx context.Context, l ledger, id string, s *stream) (more bool, err error) {
	quiet, cancel := context.WithTimeout(ctx, ps.heartbeat)
	defer cancel()
	for u, err := range l.follow(quiet, id, s.logged) {
		if err != nil && quiet.Err() != nil {
			break
		}
		if err != nil {
			return false, err
		}
		if err := s.send(u); err != nil || u.final {
			return false, err
		}
	}
	if ctx.Err() != nil || quiet.Err() == nil {
		return false, nil
	}
	return true, s.comment("still here")
}

// stream writes server-sent events.
type stream struct {
	w      http.ResponseWriter
	out    *http.ResponseController
	begun  bool
	events int    // operations sent
	last   []byte // the operation sent last
	logged int    // number of the log's entry sent last
}

// send writes an event. It omits an operation that equals the last one: each
// call of follow begins with the present state.
func (s *stream) send(u update) error {
	document, err := json.Marshal(u.document)
	if err != nil {
		return fmt.Errorf("cannot write the event: %w", err)
	}
	if u.log > 0 {
		s.logged = u.log
		return s.write(fmt.Sprintf("event: log\nid: %d\ndata: %s\n\n", u.log, document))
	}
	if bytes.Equal(document, s.last) {
		return nil
	}
	s.events++
	s.last = document
	id := ""
	if u.counted {
		id = fmt.Sprintf("id: %d\n", s.events)
	}
	return s.write(fmt.Sprintf("event: operation\n%sdata: %s\n\n", id, document))
}

func (s *stream) comment(text string) error { return s.write(": " + text + "\n\n") }

func (s *stream) write(text string) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-store")
		// A stream lasts as long as its operation. A server without deadlines
		// returns an error, which is ignored.
		_ = s.out.SetWriteDeadline(time.Time{})
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("cannot write to the client: %w", err)
	}
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("cannot write to the client: %w", err)
	}
	return nil
}
