package nf

import (
	"fmt"
	"slices"
	"strings"
)

// Clip cuts a text to a number of bytes, at the end of a character, and marks the
// cut with "…".
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// placeholder stands for a mention in the message of a Text: the object
// replacement character. It is one character, so a cut keeps or drops it as a
// whole.
const placeholder = "\ufffc"

// Text is a text for people that may mention VNF instances. Its message has a
// placeholder for each mention, in their order, so that the mentions can be
// filtered for a reader. Without mentions, it has no placeholders.
type Text struct {
	Message  string      `json:"message"`
	Mentions []Mentioned `json:"mentions,omitempty"`
}

// Textf formats a text. Arguments that are texts or errors keep their mentions.
// The format must use the arguments in order, each once.
func Textf(format string, args ...any) Text {
	var mentions []Mentioned
	parts := slices.Clone(args)
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			arg = TextOf(err)
		}
		switch arg := arg.(type) {
		case Text:
			if parts[i] = arg.Message; len(arg.Mentions) == 0 {
				parts[i] = escaped(arg.Message)
			}
			mentions = append(mentions, arg.placed()...)
		case string:
			parts[i] = escaped(arg)
		case fmt.Stringer:
			parts[i] = escaped(arg.String())
		}
	}
	if len(mentions) == 0 {
		return Text{Message: fmt.Sprintf(format, args...)}
	}
	return Text{Message: fmt.Sprintf(format, parts...), Mentions: mentions}
}

// JoinTexts joins texts as strings.Join does.
func JoinTexts(texts []Text, sep string) Text {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = t
	}
	return Textf(strings.Join(slices.Repeat([]string{"%s"}, len(texts)), sep), args...)
}

// escaped replaces the characters of a text without mentions that would be
// placeholders in one with mentions.
func escaped(text string) string { return strings.ReplaceAll(text, placeholder, "\ufffd") }

// parts returns the message as it is between the placeholders.
func (t Text) parts() []string {
	if len(t.Mentions) == 0 {
		return []string{t.Message}
	}
	return strings.Split(t.Message, placeholder)
}

// placed returns the mention of each placeholder. A cut may have dropped the last
// placeholders; a placeholder that has no mention stands for a hidden one.
func (t Text) placed() []Mentioned {
	placed := make([]Mentioned, len(t.parts())-1)
	copy(placed, t.Mentions)
	return placed
}

// String returns the text as people read it.
func (t Text) String() string {
	var b strings.Builder
	placed := t.placed()
	for i, part := range t.parts() {
		if i > 0 {
			b.WriteString(placed[i-1].String())
		}
		b.WriteString(part)
	}
	return b.String()
}

// Map returns the text with edited words. Edit must keep the placeholders that it
// does not remove with the words around them.
func (t Text) Map(edit func(string) string) Text {
	out := Text{Message: edit(t.Message), Mentions: slices.Clone(t.Mentions)}
	for i, m := range out.Mentions {
		if m.Text != nil {
			out.Mentions[i].Text = new(m.Text.Map(edit))
		} else if id := edit(m.Instance); id != m.Instance {
			out.Mentions[i].Text = &Text{Message: id}
		}
	}
	return out
}
