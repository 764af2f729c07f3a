package nf

// Place is where an entry of a list was written: in a request, or in the metadata of a
// package.
type Place struct {
	Field string           // of the entry: "networks[0]"
	File  string           // of the package; empty: the request has it
	Lines func(string) int // of the fields below Field, in the file; nil: no file
}

// Violation returns a violation of a field of the entry, such as "ips[0]"; of the entry
// itself, if the field is empty.
func (p Place) Violation(field, message string) Violation {
	v := Violation{Field: p.Field, File: p.File, Message: message}
	if field != "" {
		v.Field += "." + field
	}
	if p.Lines != nil {
		v.Line = p.Lines(field)
	}
	return v
}
