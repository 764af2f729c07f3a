package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Redacted returns a handler that masks secrets that were logged by mistake. It
// masks the values of attributes with names of secrets, and parts of any text
// that look like secrets: private keys, bearer tokens, passwords in URLs. It
// truncates a text of more than 64 KiB. It must be the last handler before the
// one that writes. It does not detect a secret without a recognizable form or
// name.
func Redacted(next slog.Handler) slog.Handler { return &redacted{next: next} }

type redacted struct {
	next   slog.Handler
	secret bool // a group with the name of a secret is open
}

// Enabled implements slog.Handler.
func (h *redacted) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *redacted) Handle(ctx context.Context, record slog.Record) error {
	message, dirty := scrub(record.Message)
	record.Attrs(func(a slog.Attr) bool {
		if !dirty {
			_, dirty = h.attr(a)
		}
		return !dirty
	})
	if !dirty {
		return h.next.Handle(ctx, record)
	}
	clean := slog.NewRecord(record.Time, record.Level, message, record.PC)
	record.Attrs(func(a slog.Attr) bool {
		a, _ = h.attr(a)
		clean.AddAttrs(a)
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h *redacted) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := slices.Clone(attrs)
	for i := range clean {
		clean[i], _ = h.attr(clean[i])
	}
	return &redacted{next: h.next.WithAttrs(clean), secret: h.secret}
}

// WithGroup implements slog.Handler.
func (h *redacted) WithGroup(name string) slog.Handler {
	return &redacted{next: h.next.WithGroup(name), secret: h.secret || secretName(name)}
}

// attr returns an attribute that may be shown, and whether it differs.
func (h *redacted) attr(a slog.Attr) (slog.Attr, bool) {
	value, dirty := redact(a.Value, h.secret || secretName(a.Key))
	if !dirty {
		return a, false
	}
	return slog.Attr{Key: a.Key, Value: value}, true
}

// redact returns a value that may be shown, and whether it differs. Of a secret
// it keeps only kinds that cannot contain one: numbers, times and booleans.
func redact(v slog.Value, secret bool) (slog.Value, bool) {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindString:
		if secret {
			return masked, v.String() != "" && v.String() != nf.Masked
		}
		text, dirty := scrub(v.String())
		return slog.StringValue(text), dirty
	case slog.KindGroup:
		return redactGroup(v.Group(), secret)
	case slog.KindAny:
		if secret && v.Any() != nil {
			return masked, true
		}
		return redactAny(v.Any())
	default:
		return v, false
	}
}

var masked = slog.StringValue(nf.Masked)

func redactGroup(attrs []slog.Attr, secret bool) (slog.Value, bool) {
	var clean []slog.Attr
	for i, a := range attrs {
		value, dirty := redact(a.Value, secret || secretName(a.Key))
		if !dirty {
			continue
		}
		if clean == nil {
			clean = slices.Clone(attrs)
		}
		clean[i].Value = value
	}
	return slog.GroupValue(clean...), clean != nil
}

// redactAny is redact for values of other kinds than slog's own. Handlers write
// them as JSON or by fmt, so it checks both forms.
func redactAny(v any) (out slog.Value, dirty bool) {
	defer func() {
		if recover() != nil { // a method of the value panicked, as it would in the handler
			out, dirty = slog.StringValue(fmt.Sprintf("!PANIC in %T", v)), true
		}
	}()
	switch x := v.(type) {
	case nil:
		return slog.AnyValue(v), false
	case error:
		text, dirty := scrub(x.Error())
		return slog.StringValue(text), dirty
	case []byte:
		text, dirty := scrub(string(x))
		return slog.StringValue(text), dirty
	case *slog.Source:
		return slog.AnyValue(v), false
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		text, dirty := scrub(r.String())
		return slog.StringValue(text), dirty
	case reflect.Map, reflect.Struct, reflect.Slice, reflect.Array, reflect.Pointer, reflect.Interface:
		return redactComposite(v)
	default:
		return slog.AnyValue(v), false
	}
}

// redactComposite checks the JSON form first, because its members have names,
// and then the form of fmt.
func redactComposite(v any) (slog.Value, bool) {
	raw, err := json.Marshal(v)
	if len(raw) > longestText {
		return slog.StringValue(fmt.Sprintf("%T of %d bytes", v, len(raw))), true
	}
	var tree any
	if err == nil && json.Unmarshal(raw, &tree) == nil {
		if tree, dirty := redactTree(tree); dirty {
			return slog.AnyValue(tree), true
		}
	}
	if text, dirty := scrub(fmt.Sprintf("%+v", v)); dirty {
		return slog.StringValue(text), true
	}
	return slog.AnyValue(v), false
}

// redactTree masks the secrets of a decoded JSON document, in place.
func redactTree(tree any) (any, bool) {
	switch t := tree.(type) {
	case string:
		text, dirty := scrub(t)
		return text, dirty
	case []any:
		dirty := false
		for i := range t {
			var d bool
			t[i], d = redactTree(t[i])
			dirty = dirty || d
		}
		return t, dirty
	case map[string]any:
		return redactMembers(t)
	}
	return tree, false
}

func redactMembers(members map[string]any) (any, bool) {
	dirty := false
	for key, value := range members {
		switch value.(type) {
		case string, []any, map[string]any:
			d := true
			if value != "" && value != nf.Masked && secretName(key) {
				members[key] = nf.Masked
			} else {
				members[key], d = redactTree(value)
			}
			dirty = dirty || d
		}
	}
	return members, dirty
}

// secretName reports whether an attribute's name is that of a secret, in any
// spelling: "password", "clientKeyData", "X-Auth-Token".
func secretName(name string) bool {
	var room [48]byte
	plain := room[:0]
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			plain = append(plain, c|0x20)
		case c != '-' && c != '_' && c != '.' && c != ' ':
			plain = append(plain, c)
		}
	}
	if len(plain) < len("token") {
		return false
	}
	return slices.ContainsFunc(secretNames[:], func(word string) bool { return strings.Contains(string(plain), word) })
}

// secretNames are parts of the names of secrets, in lower case and without
// punctuation.
var secretNames = [...]string{
	"password", "passwd", "passphrase", "secret", "token", "kubeconfig", "authorization",
	"credential", "privatekey", "keydata", "keymaterial", "apikey", "cookie",
}
