package nf

import (
	"regexp"
	"slices"
	"strings"
)

const (
	hiddenID   = "(one that you may not see)"
	hiddenText = "the message names a VNF instance that you may not see"
)

// Mention returns the words that name a VNF instance in a text. A text that an
// identity without access to the instance may read must list the id: in the
// field Mentions next to it, or by Mentioning if it is the text of an error.
func Mention(id string) string { return "VNF instance " + id }

// HideMentions replaces the ids where the text mentions them, also where "…" marks
// that an id was cut. Other text stays as it is, even if it contains one of the
// ids as a word. If no complete mention of an id is found, because the text was
// cut or a secret value in it was masked, the whole text is replaced: part of the
// id may remain in it.
func HideMentions(text string, ids []string) string {
	for _, id := range ids {
		hidden, found := hideMention(text, id)
		if !found {
			return hiddenText
		}
		text = hidden
	}
	// Order matters: a complete id at a cut may be the beginning of another one.
	for _, id := range ids {
		text = hideCut(text, id)
	}
	return text
}

// MayName reports whether a text contains the id, or a part of it before a cut.
func MayName(text, id string) bool { return strings.Contains(text, id) || hideCut(text, id) != text }

// hideCut replaces the parts of the id before a cut.
func hideCut(text, id string) string {
	parts := strings.Split(text, Mention(""))
	for i, part := range parts[1:] {
		if name, rest, cut := strings.Cut(part, cutMark); cut && name != "" && strings.HasPrefix(id, name) {
			parts[i+1] = hiddenID + cutMark + rest
		}
	}
	return strings.Join(parts, Mention(""))
}

func hideMention(text, id string) (hidden string, found bool) {
	// An id ends with a letter or a digit, so the full stop of a sentence is not
	// part of it.
	longer := regexp.MustCompile(regexp.QuoteMeta(Mention(id)) + `([._-]*[A-Za-z0-9])?`)
	hidden = longer.ReplaceAllStringFunc(text, func(mention string) string {
		if mention != Mention(id) {
			return mention // another id that begins with this one
		}
		found = true
		return Mention(hiddenID)
	})
	return hidden, found
}

// Mentioning returns err with the ids of instances that its text mentions. For
// a violation, use its field Mentions.
func Mentioning(err error, ids ...string) error {
	if err == nil || len(ids) == 0 {
		return err
	}
	return &mentioning{err, ids}
}

type mentioning struct {
	error

	ids []string
}

func (m *mentioning) Unwrap() error { return m.error }

// MentionsOf returns the ids of the instances that the text of an error
// mentions, sorted, or nil.
func MentionsOf(err error) []string {
	ids := mentionsIn(err)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func mentionsIn(err error) (ids []string) {
	switch e := any(err).(type) {
	case *mentioning:
		ids = append(ids, e.ids...)
	case Violations:
		for i := range e {
			ids = append(ids, e[i].Mentions...)
		}
	}
	switch e := any(err).(type) { // the causes
	case interface{ Unwrap() error }:
		ids = append(ids, mentionsIn(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			ids = append(ids, mentionsIn(cause)...)
		}
	}
	return ids
}
