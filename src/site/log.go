package site

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// chunk is a few events of an operation: each by itself would be a write.
type chunk struct {
	Events []nf.SiteEvent `json:"events"`
}

// part is where a chunk is kept.
func part(operation string, number int) string { return fmt.Sprintf("%s/%08d", operation, number) }

const (
	flushAfter = 500 * time.Millisecond // events are kept at the latest after this
	flushAt    = 64                     // events in a chunk at most
	maxText    = 4 << 10                // bytes of a text
	maxEvents  = 20_000                 // of an operation
)

// diary keeps the events of one run of an operation.
type diary struct {
	s    *Sites
	op   string
	veil *veil

	part    int // the chunk that is written next
	number  int // of the last event
	waiting []nf.SiteEvent
	unsure  int // how many of those that wait may have been written as this chunk
}

// openDiary goes on after what former runs have written.
func (s *Sites) openDiary(ctx context.Context, op string, v *veil) (*diary, error) {
	d := &diary{s: s, op: op, veil: v}
	for c, err := range s.events.All(ctx, op+"/") {
		if err != nil {
			return nil, err
		}
		d.part++
		if n := len(c.Events); n > 0 {
			d.number = c.Events[n-1].Number
		}
	}
	return d, nil
}

// note takes an event, without its secrets. It reports whether the events that
// wait should be written at once.
func (d *diary) note(step string, e nf.SiteEvent) (due bool) {
	if d.number >= maxEvents {
		return false
	}
	if d.number++; d.number == maxEvents {
		e = nf.SiteEvent{Kind: nf.EventNote, Message: fmt.Sprintf("these are %d events; what follows is not kept", maxEvents)}
	}
	e.Number, e.Time, e.Step = d.number, d.s.now(), step
	for _, text := range []*string{&e.Play, &e.Task, &e.Host, &e.Message} {
		*text = clip(d.veil.text(*text))
	}
	d.waiting = append(d.waiting, e)
	return len(d.waiting) >= flushAt
}

// last returns the event that was noted last of those that wait.
func (d *diary) last() (nf.SiteEvent, bool) {
	if len(d.waiting) == 0 {
		return nf.SiteEvent{}, false
	}
	return d.waiting[len(d.waiting)-1], true
}

// flush writes the events that wait. What may have been written is written again
// as it was: somebody may have read it.
func (d *diary) flush(ctx context.Context) error {
	for len(d.waiting) > 0 {
		n := len(d.waiting)
		if d.unsure > 0 {
			n = d.unsure
		}
		if err := d.s.events.Put(ctx, part(d.op, d.part), chunk{Events: d.waiting[:n]}); err != nil {
			d.unsure = n
			return unkeptError{fmt.Errorf("cannot keep the events of operation %s: %w", d.op, err)}
		}
		d.part++
		d.waiting, d.unsure = d.waiting[n:], 0
	}
	return nil
}

// clip cuts a text that is too long, and makes it one that JSON can hold.
func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		for !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) && len(s) > 0 {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
