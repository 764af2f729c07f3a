// Package wire defines the JSON documents of the native API: what the server
// sends and the command line reads.
//
// Each type is one document of swagger.yaml, or a part of one. The functions
// convert the types of nf to them: they mask sensitive values and leave out
// credentials and the replicas' own fields.
//
// The package does not read requests, and does not format for people.
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
func notNil(items []string) []string {
	if items == nil {
		return []string{}
	}
	return items
}
