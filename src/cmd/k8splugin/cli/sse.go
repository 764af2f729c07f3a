package cli

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// maxEvent bounds one line of an event stream.
const maxEvent = 16 << 20

// event is one server-sent event.
type event struct {
	name string
	data []byte
}

// events reads an event stream until it ends, which is no error. Comments, ids
// and retry times are passed over, and so is an event without data or one that
// the end of the stream cuts off. Lines end with LF or CRLF; a bare CR, which
// the standard allows too, is not understood.
func events(r io.Reader) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxEvent)
		var e event
		var got bool
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) > 0 {
				got = e.field(line, got)
				continue
			}
			if got && !yield(e, nil) {
				return
			}
			e, got = event{}, false
		}
		if err := lines.Err(); err != nil {
			yield(event{}, err)
		}
	}
}

// field takes one line into the event; hasData tells whether the event has had
// a data line, and so does what is returned.
func (e *event) field(line []byte, hasData bool) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value)
	case "data":
		if hasData {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		return true
	}
	return hasData
}
