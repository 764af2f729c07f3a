package northboundtest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// Player replays transcripts against a server.
type Player struct {
	Client *http.Client      // as returned by Client
	Server string            // URL without a trailing slash
	Vars   map[string]string // values of ${NAME}; not modified
}

// Play replays one transcript. Each exchange is a subtest; the first one that
// fails ends the transcript, because the others build on it.
func (p Player) Play(t *testing.T, file string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatalf("cannot read the transcript: %v", err)
	}
	run := &playing{Player: p, files: map[string][]byte{}, vars: maps.Clone(p.Vars)}
	if run.vars == nil {
		run.vars = map[string]string{}
	}
	for _, section := range archive.Files {
		if isFile(section.Name) {
			run.files[section.Name] = section.Data
		}
	}
	for _, section := range archive.Files {
		if isFile(section.Name) {
			continue
		}
		ok := t.Run(section.Name, func(t *testing.T) {
			if err := run.play(t, section.Name, string(section.Data)); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		})
		if !ok {
			return
		}
	}
}

// isFile reports whether a section is a file that exchanges send. Names of
// exchanges are sentences with spaces.
func isFile(section string) bool { return !strings.Contains(section, " ") }

// playing is a transcript that is being replayed.
type playing struct {
	Player

	files map[string][]byte
	vars  map[string]string
}

// message is a request or a response in a transcript.
type message struct {
	first  string
	header [][2]string
	body   string
}

const (
	pollEvery = 100 * time.Millisecond
	pollMost  = 3 * time.Minute
)

// play plays an exchange. One whose name begins with "poll until" is repeated until it
// succeeds.
func (p *playing) play(t *testing.T, name, section string) error {
	if !strings.HasPrefix(name, "poll until ") {
		return p.exchange(t, section)
	}
	every := time.NewTicker(pollEvery)
	defer every.Stop()
	for end := time.After(pollMost); ; {
		err := p.exchange(t, section)
		if err == nil {
			return nil
		}
		select {
		case <-end:
			return err
		case <-every.C:
		}
	}
}

// exchange sends the request of a section and compares the response.
func (p *playing) exchange(t *testing.T, section string) error {
	request, answer, ok := strings.Cut(section, "\n=> ")
	if !ok {
		return errors.New(`the exchange has no answer: a line that begins with "=> "`)
	}
	res, err := p.send(t, request)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if err := p.compare(answer, res, got); err != nil {
		return fmt.Errorf("%w\nthe whole answer: %s\n%s", err, res.Status, got)
	}
	return nil
}

func (p *playing) send(t *testing.T, text string) (*http.Response, error) {
	text, unknown := p.expand(text)
	if unknown != nil {
		return nil, fmt.Errorf("there is no variable %s", unknown[0])
	}
	want, err := read(text)
	if err != nil {
		return nil, err
	}
	method, path, ok := strings.Cut(want.first, " ")
	if !ok {
		return nil, fmt.Errorf("%q is not a method and a path", want.first)
	}
	body, err := p.body(want.body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(t.Context(), method, p.Server+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot create the request: %w", err)
	}
	for _, line := range want.header {
		r.Header.Add(line[0], line[1])
	}
	res, err := p.Client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot send the request: %w", err)
	}
	return res, nil
}

// read splits a message into its first line, its headers and its body.
func read(text string) (message, error) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	m := message{first: lines[0], body: strings.TrimRight(body, "\n")}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return message{}, fmt.Errorf("%q is not a header line", line)
		}
		m.header = append(m.header, [2]string{name, value})
	}
	return m, nil
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces variables by their values. It replaces unknown variables by
// <<>> and returns their names.
func (p *playing) expand(text string) (out string, unknown []string) {
	out = variable.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		value, ok := p.vars[name]
		if !ok {
			unknown = append(unknown, name)
			return "<<>>"
		}
		return value
	})
	return out, unknown
}

// body returns the bytes to send: the text itself, or an archive of a folder
// for "@zip folder" and "@tgz folder".
func (p *playing) body(text string) ([]byte, error) {
	if folder, ok := strings.CutPrefix(text, "@tgz "); ok {
		return pack(p.folder(folder), newTar)
	}
	if folder, ok := strings.CutPrefix(text, "@zip "); ok {
		return pack(p.folder(folder), newZip)
	}
	return []byte(text), nil
}

// folder returns the files below a folder, by their names relative to it.
func (p *playing) folder(name string) map[string][]byte {
	out := map[string][]byte{}
	for file, content := range p.files {
		if short, ok := strings.CutPrefix(file, name+"/"); ok {
			out[short] = content
		}
	}
	return out
}

// archive is an archive writer.
type archive struct {
	add   func(name string, content []byte) error
	close func() error
}

func newZip(w io.Writer) archive {
	z := zip.NewWriter(w)
	add := func(name string, content []byte) error {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write(content)
		}
		return err
	}
	return archive{add, z.Close}
}

func newTar(w io.Writer) archive {
	g := gzip.NewWriter(w)
	t := tar.NewWriter(g)
	add := func(name string, content []byte) error {
		err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		if err == nil {
			_, err = t.Write(content)
		}
		return err
	}
	return archive{add, func() error { return errors.Join(t.Close(), g.Close()) }}
}

func pack(files map[string][]byte, open func(io.Writer) archive) ([]byte, error) {
	var out bytes.Buffer
	a := open(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := a.add(name, files[name]); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := a.close(); err != nil {
		return nil, fmt.Errorf("cannot pack the archive: %w", err)
	}
	return out.Bytes(), nil
}

// compare compares a response with the transcript and stores the captured
// values. If the transcript also uses values that it captures, it compares a
// second time with these values.
func (p *playing) compare(text string, res *http.Response, body []byte) error {
	for _, capture := range blank.FindAllStringSubmatch(text, -1) {
		delete(p.vars, capture[1]) // refers to the new value everywhere in the text
	}
	expanded, unknown := p.expand(text)
	if err := p.compareOnce(expanded, res, body); err != nil || unknown == nil {
		return err
	}
	if expanded, unknown = p.expand(text); unknown != nil {
		return fmt.Errorf("there is no variable %s", unknown[0])
	}
	return p.compareOnce(expanded, res, body)
}

func (p *playing) compareOnce(text string, res *http.Response, body []byte) error {
	want, err := read(text)
	if err != nil {
		return err
	}
	if want.first != strconv.Itoa(res.StatusCode) {
		return fmt.Errorf("the status is %d, want %s", res.StatusCode, want.first)
	}
	m := matcher{vars: p.vars}
	for _, line := range want.header {
		if err := m.text(line[1], res.Header.Get(line[0])); err != nil {
			return fmt.Errorf("header %s: %w", line[0], err)
		}
	}
	if want.body == "" && len(body) == 0 || want.body == "..." {
		return nil
	}
	if strings.HasSuffix(mediaOf(res), "json") {
		return m.document(want.body, body)
	}
	return m.text(want.body, strings.TrimRight(string(body), "\n"))
}
