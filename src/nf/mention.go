package nf

import (
	"fmt"
	"slices"
	"strings"
)

const (
	hiddenID   = "(one that you may not see)"
	hiddenText = "the message names a VNF instance that you may not see"
)

// Mentioned is what a placeholder in a text stands for. The zero value is the id
// of an instance that the reader may not see.
type Mentioned struct {
	Instance string `json:"instance,omitempty"` // id; a reader who may not see the instance does not get the mention
	Text     *Text  `json:"text,omitempty"`     // words instead of the id; nil: the id
}

// Mention returns the words that name a VNF instance.
func Mention(id string) Text {
	return Text{Message: "VNF instance " + placeholder, Mentions: []Mentioned{{Instance: id}}}
}

// String returns the words of the mention.
func (m Mentioned) String() string {
	switch {
	case m.Text != nil:
		return m.Text.String()
	case m.Instance == "":
		return hiddenID
	}
	return m.Instance
}

// FilterMentions returns the mentions as a reader may see them. It returns the
// first error of hidden, which reports whether the reader may not see an
// instance.
func FilterMentions(mentions []Mentioned, hidden func(id string) (bool, error)) ([]Mentioned, error) {
	out := slices.Clone(mentions)
	for i, m := range out {
		if m.Instance == "" {
			continue
		}
		hide, err := hidden(m.Instance)
		switch {
		case err != nil:
			return nil, err
		case hide && m.Text == nil:
			out[i] = Mentioned{}
		case hide:
			out[i] = Mentioned{Text: &Text{Message: hiddenText}}
		case m.Text != nil:
			inner := *m.Text
			if inner.Mentions, err = FilterMentions(inner.Mentions, hidden); err != nil {
				return nil, err
			}
			out[i].Text = &inner
		}
	}
	return out, nil
}

// TextOf returns the text of an error, with its mentions. If the cause of a type
// of another package has mentions, the text is the cause's: the words around it
// contain the ids. Use Errorf to wrap an error that may have mentions.
func TextOf(err error) Text {
	var causes []Text
	switch e := any(err).(type) {
	case nil:
		return Text{}
	case interface{ Text() Text }:
		return e.Text()
	case interface{ Unwrap() error }:
		causes = append(causes, TextOf(e.Unwrap()))
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			causes = append(causes, TextOf(cause))
		}
	}
	if t := JoinTexts(causes, "\n"); len(t.Mentions) > 0 {
		return t
	}
	return Text{Message: err.Error()}
}

// Errorf is fmt.Errorf for an error with the mentions of its arguments. The
// format must use the arguments in order, each once.
func Errorf(format string, args ...any) error {
	return &textError{fmt.Errorf(format, args...), Textf(strings.ReplaceAll(format, "%w", "%s"), args...)}
}

// About returns an error that speaks of an instance in words that are not known.
// A reader who may not see the instance gets none of them.
func About(id string, err error) error {
	return &textError{err, Text{Message: placeholder, Mentions: []Mentioned{{Instance: id, Text: new(TextOf(err))}}}}
}

// textError is an error with a text that has mentions.
type textError struct {
	error

	text Text
}

// Text returns the text of the error.
func (e *textError) Text() Text { return e.text }

// Unwrap returns the error without mentions.
func (e *textError) Unwrap() error { return e.error }
