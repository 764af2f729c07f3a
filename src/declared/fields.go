package declared

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// unknownFields returns the paths of the fields in a decoded JSON document that its type
// does not have. encoding/json ignores them, or names only the first.
func unknownFields(tree any, t reflect.Type, path string) (out []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := tree.(type) {
	case map[string]any:
		var known map[string]reflect.Type
		if t.Kind() == reflect.Struct {
			known = fieldsOf(t)
		}
		for name, inner := range value {
			at := strings.TrimPrefix(path+"."+name, ".")
			switch field, ok := known[name]; {
			case ok:
				out = append(out, unknownFields(inner, field, at)...)
			case known != nil:
				out = append(out, at)
			case t.Kind() == reflect.Map:
				out = append(out, unknownFields(inner, t.Elem(), at)...)
			}
		}
	case []any:
		for i, inner := range value {
			if t.Kind() == reflect.Slice {
				out = append(out, unknownFields(inner, t.Elem(), path+"["+strconv.Itoa(i)+"]")...)
			}
		}
	}
	slices.Sort(out)
	return out
}

// fieldsOf returns the types of a struct's fields, by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(out, fieldsOf(f.Type))
		case name != "-" && name != "":
			out[name] = f.Type
		}
	}
	return out
}
