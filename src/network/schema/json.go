package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Parse decodes a specification, checks it, and returns its canonical form. Its error
// is nf.Invalid with all violations.
func Parse(spec json.RawMessage, check func(c *Checker, given map[string]any) map[string]any) (map[string]any, error) {
	c := &Checker{}
	given, err := Decode(spec)
	if err != nil {
		c.Fault("spec", "must be an object in JSON: %s", err)
	} else if out := check(c, given); len(c.Wrong) == 0 {
		return out, nil
	}
	return nil, nf.E(nf.Invalid, "check", "network", c.Wrong)
}

// Decode decodes an object, with numbers as they are written.
func Decode(spec []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(spec))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is text after the object")
	}
	return m, nil
}

// Change decodes a specification before and after a change. It reports whether both are
// objects; otherwise this is a fault.
func Change(c *Checker, before, after []byte) (was, is map[string]any, ok bool) {
	was, err := Decode(before)
	is, wrong := Decode(after)
	if ok = err == nil && wrong == nil; !ok {
		c.Fault("spec", "cannot be compared with the present one")
	}
	return was, is, ok
}

// Canonical returns a value in JSON with sorted keys.
func Canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
