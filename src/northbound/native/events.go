package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// followOperation streams an operation as server-sent events until it has ended
// or the client goes away. A comment now and then keeps proxies from closing a
// quiet stream.
func (a *API) followOperation(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["operation_id"]
	s := &stream{w: w, out: http.NewResponseController(w)}
	for {
		more, err := a.stream(r.Context(), id, s)
		switch {
		case err != nil && !s.begun:
			return err
		case err != nil:
			a.cfg.Logger.WarnContext(r.Context(), "a stream of events was cut off", "operation", id, "error", err)
			return nil
		case !more:
			return nil
		}
	}
}

// stream sends the versions of an operation for as long as a stream may be
// quiet, and then a sign of life. It reports whether there may be more.
func (a *API) stream(ctx context.Context, id string, s *stream) (more bool, err error) {
	quiet, cancel := context.WithTimeout(ctx, a.cfg.Heartbeat)
	defer cancel()
	for op, err := range a.follow(quiet, id) {
		if err != nil {
			return false, err
		}
		if err := s.send(op); err != nil || op.State.Final() {
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
	events int
	last   []byte
}

// send writes an event, unless it says what the last one said: each round of
// following begins with the present state.
func (s *stream) send(op nf.Operation) error {
	document, err := json.Marshal(fromOperation(op))
	if err != nil {
		return fmt.Errorf("cannot write the event: %w", err)
	}
	if bytes.Equal(document, s.last) {
		return nil
	}
	s.events++
	s.last = document
	return s.write(fmt.Sprintf("event: operation\nid: %d\ndata: %s\n\n", s.events, document))
}

func (s *stream) comment(text string) error { return s.write(": " + text + "\n\n") }

func (s *stream) write(text string) error {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-store")
		// A stream lasts as long as its operation, not as other answers may. A
		// server that has no deadlines has none to lift.
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
