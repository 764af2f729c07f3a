package helm

import (
	"reflect"
	"strings"
)

// fromTOMLCost is the cost of decoding TOML. The decoder keeps the complete path of
// each key, and a path for each part of it.
func fromTOMLCost(m *meter, args []reflect.Value) int {
	const partSize = 32
	text := args[0].String()
	longest := 0
	for line := range strings.Lines(text) {
		longest = max(longest, strings.Count(line, "."))
	}
	keys := strings.Count(text, "=") + strings.Count(text, "[") + strings.Count(text, ".")
	depth := longest + strings.Count(text, "{") + 1
	return decodeCost(m, args) + product(partSize, product(keys, depth))
}

// toTOMLCost is the cost of encoding as TOML, which repeats the complete path at the
// beginning of each table.
func toTOMLCost(m *meter, args []reflect.Value) int {
	m.must(encodeCost(m, args)) // bounds how many values are visited
	return product(2, tablePaths(args[0], 0))
}

// tablePaths returns the size of the paths of all tables in a value, at most.
func tablePaths(v reflect.Value, path int) int {
	const keySize, escaped = 3, 6
	v = inside(v)
	size := path
	switch v.Kind() {
	case reflect.Map:
		for key, value := range v.Seq2() {
			w, _ := weigh(key)
			size += tablePaths(value, path+keySize+escaped*w.size)
		}
	case reflect.Slice:
		for _, item := range v.Seq2() {
			if k := inside(item).Kind(); k == reflect.Map || k == reflect.Slice {
				size += tablePaths(item, path)
			}
		}
	default:
		return 0
	}
	return min(size, tooMuch)
}
