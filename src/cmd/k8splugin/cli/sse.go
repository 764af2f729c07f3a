package cli

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// maxEvent is the maximum size of an event stream's line in bytes.
const maxEvent = 16 << 20

// event is one server-sent event.
type event struct {
	name string
	data []byte
}

// events reads an event stream until its end, which is not an error. It ignores
// comments, ids, retry times, events without data, and an incomplete last
// event. Lines end with LF or CRLF. A bare CR, which the standard also allows,
// is not supported.
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

// field adds a line to the event. hasData says whether the event already has a
// data line; field returns the new value.
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
