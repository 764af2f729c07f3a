// Package wire defines the JSON documents of the native API: the requests and
// the responses. The server and the command line use the same types.
//
// Each type is one document of swagger.yaml, or a part of one, with the same
// fields. The functions convert the types of nf to responses: they mask
// sensitive values and leave out credentials and the replicas' own fields.
//
// A merge patch (RFC 7396) of an object is described by the fields that it may
// change, such as InstanceEdit.
//
// The package does not validate requests, and does not format for people.
package wire

// List converts the items of a list. The result is never nil, so that it is []
// in JSON.
func List[T, U any](items []T, convert func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = convert(item)
	}
	return out
}

// notNil returns the items, or an empty list for nil, which is [] in JSON.
func notNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
