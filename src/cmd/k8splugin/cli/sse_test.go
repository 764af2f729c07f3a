package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   []event
	}{
		"One": {
			reason: "an event ends with an empty line",
			in:     "event: operation\ndata: {}\n\n",
			want:   []event{{"operation", []byte("{}")}},
		},
		"CRLF": {
			reason: "lines may end with CRLF",
			in:     "event: a\r\ndata: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\n",
			want:   []event{{"a", []byte("1")}, {"b", []byte("2")}},
		},
		"SeveralDataLines": {
			reason: "data lines are joined by newlines, also when the first is empty",
			in:     "data:\ndata: b\ndata\n\n",
			want:   []event{{"", []byte("\nb\n")}},
		},
		"OneSpaceOnly": {
			reason: "one space after the colon is no part of the value, a second one is",
			in:     "data:  x\n\ndata:y:z\n\n",
			want:   []event{{"", []byte(" x")}, {"", []byte("y:z")}},
		},
		"Ignored": {
			reason: "comments, ids, retry times and unknown fields say nothing to us",
			in:     ": hello\nid: 7\nretry: 10\nsomething\ndata: x\n\n",
			want:   []event{{"", []byte("x")}},
		},
		"WithoutData": {
			reason: "an event without data is none, and its name is not the next one's",
			in:     "event: a\n\n\ndata: x\n\n",
			want:   []event{{"", []byte("x")}},
		},
		"CutOff": {
			reason: "an event that the end of the stream cuts off was never sent",
			in:     "data: x\n\ndata: y\n",
			want:   []event{{"", []byte("x")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []event
			for e, err := range events(strings.NewReader(tc.in)) {
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEventsTooLong(t *testing.T) {
	in := "data: " + strings.Repeat("x", maxEvent) + "\n\n"
	var failed error
	for _, err := range events(strings.NewReader(in)) {
		failed = err
	}
	if failed == nil {
		t.Error("a line beyond the bound must end the sequence with an error")
	}
}

// FuzzEvents checks that whatever a server sends is read without a panic, the
// same with either line end, and that what was written as events is read back.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: operation\ndata: {}\n\n"))
	f.Add([]byte(":\n\ndata\ndata\n\n"))
	f.Add([]byte("data: a\r\n\r\n\xff\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		first := collect(in)
		crlf := bytes.ReplaceAll(bytes.ReplaceAll(in, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
		if !bytes.Contains(in, []byte("\r")) && !cmp.Equal(first, collect(crlf), cmp.AllowUnexported(event{})) {
			t.Errorf("%q reads differently with CRLF", in)
		}
		if again := collect(write(first)); !cmp.Equal(first, again, cmp.AllowUnexported(event{})) {
			t.Errorf("%q: wrote %+v, read back %+v", in, first, again)
		}
	})
}

func collect(in []byte) []event {
	var all []event
	for e, err := range events(bytes.NewReader(in)) {
		if err == nil {
			all = append(all, e)
		}
	}
	return all
}

func write(all []event) []byte {
	var b bytes.Buffer
	for _, e := range all {
		b.WriteString("event: " + e.name + "\n")
		for line := range bytes.SplitSeq(e.data, []byte("\n")) {
			b.WriteString("data: " + string(line) + "\n")
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}
