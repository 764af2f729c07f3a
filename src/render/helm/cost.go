package helm

import (
	"maps"
	"reflect"
	"strings"
)

// cost returns the charge for a function call, before it runs, in bytes: for
// the memory that it needs and the time that it takes.
type cost func(m *meter, args []reflect.Value) int

var (
	// passing functions accept any value, and return or store it unchanged.
	passing = []string{
		"all", "any", "coalesce", "default", "dig", "empty", "first", "get", "hasKey", "kindIs", "kindOf", "last", "list",
		"mustFirst", "mustLast", "required", "set", "ternary", "tuple", "typeIs", "typeIsLike", "typeOf", "unset",
	}

	// listing functions iterate over a list or a map, but not over nested
	// values.
	listing = []string{
		"append", "chunk", "compact", "concat", "initial", "keys", "mustAppend", "mustChunk", "mustCompact", "mustInitial",
		"mustPrepend", "mustPush", "mustRest", "mustReverse", "omit", "pick", "pluck", "prepend", "push", "rest", "reverse",
		"values",
	}

	// copying functions copy texts, or format values, without amplifying them.
	copying = []string{
		"abbrev", "abbrevboth", "adler32sum", "b32dec", "b32enc", "b64dec", "b64enc", "cat", "contains", "hasPrefix", "hasSuffix",
		"html", "lower", "nospace", "print", "println", "quote", "sha1sum", "sha256sum", "sha512sum", "squote", "substr",
		"toString", "trim", "trimPrefix", "trimSuffix", "trunc", "untitle", "upper",
	}

	// encoding functions encode or copy all of a value.
	encoding = []string{
		"deepCopy", "merge", "mergeOverwrite", "mustDeepCopy", "mustMerge", "mustMergeOverwrite", "mustToJson", "mustToPrettyJson",
		"mustToRawJson", "mustToYaml", "toJson", "toPrettyJson", "toRawJson", "toYaml", "toYamlPretty",
	}

	decoding = []string{"fromJson", "fromJsonArray", "fromYaml", "fromYamlArray", "mustFromJson"}
)

// costs returns the costs of all functions whose cost is not defaultCost.
func costs() map[string]cost {
	out := map[string]cost{
		"dict": dictCost, "join": joinCost, "printf": printfCost, "repeat": repeatCost, "replace": replaceCost, "wrapWith": wrapCost,
		"indent": indentCost, "nindent": indentCost, "shuffle": times(8), "trimAll": trimCost, "trimall": trimCost, "wrap": times(4),
		"split": splitCost(160), "splitList": splitCost(32), "splitn": splitnCost,
		"until": rangeCost(16), "untilStep": rangeCost(16), "seq": rangeCost(64),
		"without": withoutCost, "mustWithout": withoutCost, "uniq": uniqCost, "mustUniq": uniqCost,
		"fromToml": fromTOMLCost, "toToml": toTOMLCost, "mustToToml": toTOMLCost,
		"slice": sliceCost, "mustSlice": sliceCost,
		"lookup": func(*meter, []reflect.Value) int { return lookupCost },
	}
	for _, name := range []string{"add1f", "addf", "divf", "mulf", "subf"} {
		out[name] = decimalCost
	}
	for _, name := range []string{"randAlpha", "randAlphaNum", "randAscii", "randBytes", "randNumeric"} {
		out[name] = rangeCost(256)
	}
	for price, names := range map[int][]string{
		64 << 10:  {"buildCustomCert", "genCAWithKey", "genSelfSignedCertWithKey", "genSignedCertWithKey"},
		256 << 10: {"bcrypt", "htpasswd"},
		1 << 20:   {"genCA", "genSelfSignedCert", "genSignedCert"},
		2 << 20:   {"derivePassword"},
		4 << 20:   {"genPrivateKey"},
	} {
		for _, name := range names {
			out[name] = cryptoCost(price)
		}
	}
	for _, class := range []struct {
		names []string
		price cost
	}{{passing, passCost}, {listing, listCost}, {copying, copyCost}, {encoding, encodeCost}, {decoding, decodeCost}} {
		for _, name := range class.names {
			out[name] = class.price
		}
	}
	maps.Copy(out, regexCosts())
	return out
}

// defaultCost is the cost of an unknown function, such as one of a later Sprig:
// it may read its arguments completely and copy them several times.
func defaultCost(m *meter, args []reflect.Value) int { return transient(copyCost(m, args)) }

// copyCost is the cost of reading and copying all arguments.
func copyCost(m *meter, args []reflect.Value) int {
	size := 0
	for _, arg := range args {
		w := m.weigh(arg)
		size += w.size + product(itemCost, w.items)
	}
	return size
}

// transient returns the charge for data of which a multiple is allocated
// temporarily. A small size is charged once.
func transient(size int) int {
	const (
		large  = 128 << 10
		factor = 24
	)
	return size + product(factor, size-large)
}

func times(factor int) cost {
	return func(m *meter, args []reflect.Value) int { return product(factor, copyCost(m, args)) }
}

func passCost(_ *meter, args []reflect.Value) int {
	size := 0
	for arg := range single(args) {
		size += itemCost
		if v := inside(arg); v.Kind() == reflect.String {
			size += v.Len()
		}
	}
	return size
}

func listCost(m *meter, args []reflect.Value) int {
	size := passCost(m, args)
	for arg := range single(args) {
		if k := inside(arg).Kind(); k == reflect.Slice || k == reflect.Map {
			size += product(4*itemCost, inside(arg).Len())
		}
	}
	return size
}

// sliceCost is the cost of slice, which formats an index that is not a number.
func sliceCost(m *meter, args []reflect.Value) int {
	return listCost(m, args[:1]) + copyCost(m, args[1:])
}

// encodeCost is the cost of a value's encoded form, its indentation, and the
// intermediate values.
func encodeCost(m *meter, args []reflect.Value) int {
	size := 0
	for _, arg := range args {
		w := m.weigh(arg)
		size += 2*transient(w.size) + product(8*itemCost, w.items) + product(4, w.indent)
	}
	return size
}

// decodeCost is the cost of the values that a text decodes to, and of the
// intermediate ones.
func decodeCost(m *meter, args []reflect.Value) int {
	const valueSize = 512
	text := args[0].String()
	content := []byte(text)
	size := transient(len(text)) + product(valueSize, marks(content)+strings.Count(text, "="))
	if m.used+size > m.limit {
		return size // the text is too large to be parsed, even without its aliases
	}
	return size + expanded(content)
}

// dictCost is the cost of dict, which formats keys that are not strings.
func dictCost(m *meter, args []reflect.Value) int {
	size := 0
	for i := range args[0].Len() {
		size += 2 * itemCost
		if i%2 == 0 {
			size += m.weigh(args[0].Index(i)).size
		}
	}
	return size
}

func joinCost(m *meter, args []reflect.Value) int {
	list := inside(args[1])
	size := copyCost(m, args)
	if list.Kind() == reflect.Slice {
		size += product(args[0].Len(), list.Len())
	}
	return size
}

func repeatCost(_ *meter, args []reflect.Value) int {
	return product(int(args[0].Int()), args[1].Len())
}

func replaceCost(_ *meter, args []reflect.Value) int {
	old, with, text := args[0].String(), args[1].String(), args[2].String()
	return len(text) + product(strings.Count(text, old), len(with))
}

func indentCost(_ *meter, args []reflect.Value) int {
	text := args[1].String()
	return len(text) + product(int(args[0].Int()), strings.Count(text, "\n")+1)
}

func wrapCost(_ *meter, args []reflect.Value) int {
	text := args[2].String()
	found := len(text)/max(int(args[0].Int()), 1) + strings.Count(text, " ") + 1
	return 4*len(text) + product(found, args[1].Len())
}

// trimCost is the cost of trimAll, which looks up each character in a set.
func trimCost(_ *meter, args []reflect.Value) int {
	return args[1].Len() + product(args[0].Len(), args[1].Len())/64
}

func splitCost(size int) cost {
	return func(_ *meter, args []reflect.Value) int {
		text := args[len(args)-1].String()
		return product(size, strings.Count(text, args[0].String())+1)
	}
}

// splitnCost is the cost of splitn, which allocates the requested number of
// pieces.
func splitnCost(m *meter, args []reflect.Value) int {
	return splitCost(160)(m, args) + product(32, min(int(args[1].Int()), args[2].Len()+1))
}

// printfCost is the cost of printf. Its verbs can have a width, and can refer to
// one argument any number of times.
func printfCost(m *meter, args []reflect.Value) int {
	format := args[0].String()
	size := copyCost(m, args[1:])
	if strings.Contains(format, "[") {
		size = product(size, strings.Count(format, "%"))
	}
	return len(format) + size + widths(format)
}

// widths returns an upper bound for the sum of the widths of a format's verbs.
func widths(format string) int {
	const widest = 1e6 // fmt ignores a larger width
	sum, number := 0, 0
	for _, c := range format {
		switch {
		case '0' <= c && c <= '9':
			number = min(10*number+int(c-'0'), widest)
			continue
		case c == '*':
			number = widest
		}
		sum += number
		number = 0
	}
	return sum + number
}

// withoutCost is the cost of without, which compares each item with each other
// argument.
func withoutCost(m *meter, args []reflect.Value) int {
	return defaultCost(m, args) + product(args[1].Len(), m.weigh(args[0]).size)
}

// uniqCost is the cost of uniq, which compares each item with each other item.
func uniqCost(m *meter, args []reflect.Value) int {
	size := defaultCost(m, args)
	if list := inside(args[0]); list.Kind() == reflect.Slice {
		size += product(list.Len(), size) / 64
	}
	return size
}

// decimalCost is the cost of decimal arithmetic, whose results grow with each
// operation.
func decimalCost(m *meter, args []reflect.Value) int {
	last := args[len(args)-1]
	size := defaultCost(m, args)
	if last.Kind() == reflect.Slice {
		size += product(last.Len(), last.Len())
	}
	return size
}

// cryptoCost is the cost of keys, certificates and password hashes. The time for
// a signature grows with the cube of the key's length.
func cryptoCost(price int) cost {
	const signature = 30 << 10 // work per byte charged
	return func(m *meter, args []reflect.Value) int {
		longest := 0
		for _, arg := range args {
			w := m.weigh(arg)
			longest = max(longest, min(w.size, 1<<17))
		}
		return price + defaultCost(m, args) + product(product(longest, longest), longest)/signature
	}
}

// rangeCost is the cost of functions whose result has one item for each number
// in a range.
func rangeCost(size int) cost {
	return func(_ *meter, args []reflect.Value) int {
		var n []int
		for arg := range single(args) {
			n = append(n, int(arg.Int()))
		}
		switch len(n) {
		case 0:
			return 0
		case 1:
			return product(size, length(0, n[0], 1))
		case 2:
			return product(size, length(n[0], n[1], 1))
		}
		if len(args) == 1 { // seq has the step as its second number
			return product(size, length(n[0], n[2], n[1]))
		}
		return product(size, length(n[0], n[1], n[2]))
	}
}

// length returns an upper bound for the number of items of a range. The
// functions add the step to the last item, which must not overflow.
func length(from, to, step int) int {
	const large = 1 << 53
	for _, n := range []int{from, to, step} {
		if n > large || n < -large {
			return tooMuch
		}
	}
	if step == 0 {
		return 0 // the functions return an empty list
	}
	distance := (to - from) / step
	return max(distance, -distance) + 2
}

// single iterates over arguments, and over each of the variadic ones.
func single(args []reflect.Value) func(func(reflect.Value) bool) {
	return func(yield func(reflect.Value) bool) {
		for i, arg := range args {
			if i < len(args)-1 || arg.Kind() != reflect.Slice {
				if !yield(arg) {
					return
				}
				continue
			}
			for j := range arg.Len() {
				if !yield(arg.Index(j)) {
					return
				}
			}
		}
	}
}

// product multiplies sizes without overflow.
func product(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > tooMuch/b {
		return tooMuch
	}
	return a * b
}
