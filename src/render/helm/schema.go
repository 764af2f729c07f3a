package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

// schemaURL is what a values.schema.json is called while it is compiled.
const schemaURL = "file:///values.schema.json"

// maxJudged is how many times parts of a schema are held against parts of the
// values. Parts that refer to each other make that grow without bound.
const maxJudged = 512 << 10

var (
	errJudged   = fmt.Errorf("takes more than %d comparisons", maxJudged)
	errUnusable = errors.New("the schema cannot be used")
)

// nowhere is where what lies outside of a schema is: nothing is fetched.
type nowhere struct{}

// Load finds nothing.
func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not in the chart", url)
}

// cutOff takes out of a schema the references that lead out of it, so that what
// is there may be anything, and returns them.
func cutOff(document any) []string {
	inside := map[string]bool{}
	walk(document, func(object map[string]any) {
		for _, keyword := range []string{"$id", "id"} {
			if id, ok := object[keyword].(string); ok {
				inside[id] = true
			}
		}
	})
	var cut []string
	walk(document, func(object map[string]any) {
		ref, ok := object["$ref"].(string)
		url, _, _ := strings.Cut(ref, "#")
		if ok && url != "" && !inside[url] && !inside[url+"#"] && !isDraft(url) {
			cut = append(cut, ref)
			delete(object, "$ref")
		}
	})
	slices.Sort(cut)
	return slices.Compact(cut)
}

// isDraft reports whether a URL is that of a version of JSON schema itself.
func isDraft(url string) bool {
	return strings.HasPrefix(url, "http://json-schema.org/") || strings.HasPrefix(url, "https://json-schema.org/")
}

// walk calls a function with every object of a JSON value.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, inner := range v {
			walk(inner, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, visit)
		}
	}
}

var errLargeNumber = errors.New("contains a number with an exponent of more than 3 digits")

// hasLargeNumber reports whether a schema contains a number that takes much more
// memory as a value than as a text, such as 1e1000000.
func hasLargeNumber(document any) bool {
	switch v := document.(type) {
	case map[string]any:
		for _, inner := range v {
			if hasLargeNumber(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasLargeNumber)
	case json.Number:
		const exponentSize = 3
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		return len(strings.TrimLeft(exponent, "+-0")) > exponentSize
	}
	return false
}

// judge counts how often a schema is held against a value. It is compiled into
// every part of one.
type judge struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one validation, which takes none
	left int
}

// Validate stops the validation when it has taken too much, or its context has
// ended.
func (j *judge) Validate(*jsonschema.ValidatorContext, any) {
	if j.left--; j.left < 0 {
		panic(errJudged)
	}
	if j.left%1024 == 0 && j.ctx != nil && j.ctx.Err() != nil {
		panic(j.ctx.Err())
	}
}

// pattern compiles a pattern of a schema. Its size and its matches count as
// comparisons.
func (j *judge) pattern(text string) (jsonschema.Regexp, error) {
	size, instructions := compiled(text, "")
	if j.left -= size / patternBytes; j.left < 0 {
		return nil, errJudged
	}
	re, err := regexp.Compile(text)
	return judgedPattern{re, instructions, j}, err
}

// Work on patterns that counts as one comparison.
const (
	patternBytes = 256  // bytes of a compiled pattern
	patternSteps = 1024 // instructions executed
)

type judgedPattern struct {
	*regexp.Regexp

	instructions int
	judge        *judge
}

// MatchString implements jsonschema.Regexp.
func (p judgedPattern) MatchString(text string) bool {
	if p.judge.left -= product(p.instructions, len(text)) / patternSteps; p.judge.left < 0 {
		panic(errJudged)
	}
	return p.Regexp.MatchString(text)
}

// compile reads a schema. The references that lead out of it are returned.
func compile(content []byte, j *judge) (schema *jsonschema.Schema, refs []string, err error) {
	err = guarded(func() error {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err != nil {
			return err
		}
		if hasLargeNumber(document) {
			return errLargeNumber
		}
		refs = cutOff(document)
		compiler := jsonschema.NewCompiler()
		compiler.UseRegexpEngine(j.pattern)
		compiler.UseLoader(nowhere{})
		compiler.RegisterVocabulary(&jsonschema.Vocabulary{
			URL:     "urn:k8splugin:judge",
			Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return j, nil },
		})
		compiler.AssertVocabs()
		if err := compiler.AddResource(schemaURL, document); err != nil {
			return err
		}
		schema, err = compiler.Compile(schemaURL)
		return err
	})
	return schema, refs, err
}

func (l *reader) checkSchema(at place, content []byte) {
	_, refs, err := compile(content, &judge{left: maxJudged})
	if err != nil {
		why := err.Error()
		if line, column, wrong := syntax.JSON(content); wrong != "" {
			at, why = place{at.file, line}, fmt.Sprintf("column %d: %s", column, wrong)
		}
		l.report.add(at, "", "is no JSON schema: %s", why)
	}
	for _, ref := range refs {
		l.report.warn("%s: refers to %s, which is not looked up; what it describes is not checked", at.file, ref)
	}
}

// checkValues holds the values of a chart and of its subcharts against their
// schemas.
func checkValues(ctx context.Context, c *chart.Chart, values map[string]any, field string, r *report) error {
	if len(c.Schema) > 0 {
		if err := checkSingle(ctx, c.Schema, values, field, r); err != nil {
			return err
		}
	}
	for _, d := range c.Dependencies() {
		table, ok := values[d.Name()].(map[string]any)
		if !ok {
			continue
		}
		if err := checkValues(ctx, d, table, field+"."+d.Name(), r); err != nil {
			return err
		}
	}
	return nil
}

func checkSingle(ctx context.Context, content []byte, values map[string]any, field string, r *report) error {
	j := &judge{ctx: ctx, left: maxJudged}
	schema, _, err := compile(content, j)
	if err == nil {
		err = j.holds(schema, values)
	}
	var found *jsonschema.ValidationError
	switch {
	case ctx.Err() != nil:
		return ended(ctx).at(place{file: schemaFile})
	case errors.As(err, &found):
		reportCauses(found, field, r)
	case err != nil:
		r.add(place{file: schemaFile}, field, "cannot be held against the schema: %v", err)
	}
	return nil
}

func (j *judge) holds(schema *jsonschema.Schema, values map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errUnusable
			if known, ok := p.(error); ok && errors.Is(known, errJudged) {
				err = errJudged
			}
		}
	}()
	return schema.Validate(values)
}

// reportCauses reports the innermost causes of an error, each at its field.
func reportCauses(e *jsonschema.ValidationError, field string, r *report) {
	if len(e.Causes) == 0 || isChoice(e.ErrorKind) {
		r.add(place{}, fieldOf(field, e.InstanceLocation), "%s", complaint(e.ErrorKind))
	}
	if isChoice(e.ErrorKind) {
		return
	}
	for _, cause := range e.Causes {
		reportCauses(cause, field, r)
	}
}

// isChoice reports whether an error says that none of some alternatives fits,
// so that no single one of its causes is to blame.
func isChoice(k jsonschema.ErrorKind) bool {
	switch k.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		return true
	}
	return false
}

// complaint says what is wrong with a value without repeating it.
func complaint(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return fmt.Sprintf("does not match the pattern %s", k.Want)
	case *kind.Format:
		return fmt.Sprintf("is not of the format %s", k.Want)
	case *kind.AnyOf:
		return "fits none of the alternatives of the schema"
	case *kind.OneOf:
		return "does not fit exactly one of the alternatives of the schema"
	case *kind.Required:
		return "lacks " + strings.Join(quoted(k.Missing), ", ")
	case *kind.AdditionalProperties:
		return "has what the schema does not know: " + strings.Join(quoted(k.Properties), ", ")
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%q", name)
	}
	slices.Sort(out)
	return out
}

// fieldOf returns the path of a value: parameters.a[0].b.
func fieldOf(field string, location []string) string {
	var b strings.Builder
	b.WriteString(field)
	for _, step := range location {
		if strings.Trim(step, "0123456789") == "" {
			b.WriteString("[" + step + "]")
		} else {
			b.WriteString("." + step)
		}
	}
	return b.String()
}
