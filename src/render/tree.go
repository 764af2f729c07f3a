package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	maxName  = 1024      // bytes of one name
	maxNames = 256 << 10 // bytes of all names together, which are stored with the package
)

// cleanName returns the clean form of an entry's name, or a description of its
// fault. The name of the root folder is ".".
func cleanName(name string) (clean, fault string) {
	switch {
	case name == "", name == "/":
		return ".", ""
	case len(name) > maxName:
		return "", fmt.Sprintf("has a name of more than %d bytes", maxName)
	case strings.ContainsFunc(name, unprintable):
		return "", "has a name with non-printable characters"
	case strings.Contains(name, `\`):
		return "", "has a backslash in its name"
	case strings.HasPrefix(name, "/"):
		return "", "is an absolute path"
	case hasDrive(name):
		return "", "is a path on a drive"
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", "is a path through a parent folder"
	}
	return path.Clean(name), ""
}

// unprintable reports whether a character may not be in a name. That includes
// invalid UTF-8, which reads as the replacement character, and invisible
// characters that change the direction of text.
func unprintable(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }

// hasDrive reports whether a name begins with a drive letter, such as C:.
func hasDrive(name string) bool {
	return len(name) > 1 && name[1] == ':' && 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z'
}

// isJunk reports whether a file is one that macOS adds to archives.
func isJunk(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "._") || base == ".DS_Store" || slices.Contains(strings.Split(name, "/"), "__MACOSX")
}

// checkTree rejects an empty archive, and one in which a path is both a file
// and a folder. It also rejects two names that some file system treats as
// equal.
func (u *unpacker) checkTree() error {
	if len(u.files) == 0 {
		return refused("", "contains no files")
	}
	names := slices.Sorted(maps.Keys(u.files))
	written := make(map[string]string, len(names)) // spelling → name
	for _, name := range names {
		if other, twice := written[spelling(name)]; twice {
			return refused(name, fmt.Sprintf("differs from %q only in the case or the encoding of its letters", other))
		}
		written[spelling(name)] = name
	}
	for name := range u.folders {
		names = append(names, name+"/")
	}
	slices.Sort(names)
	for _, name := range names {
		for folder := path.Dir(spelling(name)); folder != "."; folder = path.Dir(folder) {
			if file, is := written[folder]; is {
				return refused(file, "is both a file and a folder")
			}
		}
	}
	return nil
}

// spelling returns the same text for two names that are equal on a file system
// that ignores case or decomposes characters.
func spelling(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(name))))
}

// unwrap makes paths relative to the single folder that contains everything, if
// it has a metadata file.
func unwrap(files Files) Files {
	folder := ""
	for name := range files {
		top, _, nested := strings.Cut(name, "/")
		if !nested || folder != "" && top != folder {
			return files
		}
		folder = top
	}
	_, yaml := files[folder+"/metadata.yaml"]
	_, yml := files[folder+"/metadata.yml"]
	if !yaml && !yml {
		return files
	}
	inner := make(Files, len(files))
	for name, content := range files {
		inner[strings.TrimPrefix(name, folder+"/")] = content
	}
	return inner
}
