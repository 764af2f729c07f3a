package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// ignored holds the rules that exclude files of a chart's folder.
type ignored []ignoreRule

// ignoreRule is a line of a .helmignore.
type ignoreRule struct {
	pattern string
	keep    bool // starts with !: excludes what does not match
	folder  bool // ends with /: matches folders only
	whole   bool // contains /: matches whole paths, not names
}

// readIgnored reads the .helmignore of a chart's folder. If the folder is not a
// chart, it returns no rules.
func readIgnored(root *os.Root) (ignored, error) {
	if _, err := root.Stat("Chart.yaml"); err != nil {
		return nil, nil //nolint:nilerr // it is no chart
	}
	text, err := root.ReadFile(".helmignore")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder: %w", err)
	}
	var out ignored
	for number, line := range strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rule := ignoreRule{pattern: line}
		rule.pattern, rule.keep = strings.CutPrefix(rule.pattern, "!")
		rule.pattern, rule.folder = strings.CutSuffix(rule.pattern, "/")
		rule.whole = strings.Contains(rule.pattern, "/")
		rule.pattern = strings.TrimPrefix(rule.pattern, "/")
		if _, err := path.Match(rule.pattern, "x"); err != nil || strings.Contains(rule.pattern, "**") {
			return nil, fmt.Errorf(".helmignore:%d: %q is not a pattern that charts support", number+1, line)
		}
		out = append(out, rule)
	}
	return out, nil
}

// match reports whether a file or folder is excluded. As in Helm, the first
// matching rule decides.
func (r ignored) match(name string, folder bool) bool {
	for _, rule := range r {
		text := path.Base(name)
		if rule.whole {
			text = name
		}
		hit, _ := path.Match(rule.pattern, text) // the patterns were validated
		if hit = hit && (!rule.folder || folder); hit != rule.keep {
			return true
		}
	}
	return false
}
