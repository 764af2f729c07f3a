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

// schemaURL is the URL of a values.schema.json while it is compiled.
const schemaURL = "file:///values.schema.json"

// maxComparisons is the maximum number of comparisons between parts of a schema and
// parts of the values. Parts of a schema that refer to each other can make that
// number grow without limit.
const maxComparisons = 512 << 10

var (
	errComparisons = fmt.Errorf("takes more than %d comparisons", maxComparisons)
	errUnusable    = errors.New("the schema cannot be used")
)

// chartOnlyLoader loads no schema: a reference to anything outside of the chart's
// own schema is an error.
type chartOnlyLoader struct{}

// Load always returns an error.
func (chartOnlyLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not in the chart", url)
}

// removeExternalRefs removes the references to other schemas, so that any value is
// valid there, and returns them.
func removeExternalRefs(document any) []string {
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

// isDraft reports whether a URL is that of a version of JSON Schema itself.
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

// hasLargeNumber reports whether a schema contains a number that takes much
// more memory as a value than as text, such as 1e1000000.
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

// workLimiter limits the number of comparisons of one validation. It is compiled
// into every part of the schema.
type workLimiter struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one validation, which takes none
	left int
}

// Validate stops the validation if it exceeds its limit or its context has
// ended.
func (wl *workLimiter) Validate(*jsonschema.ValidatorContext, any) {
	if wl.left--; wl.left < 0 {
		panic(errComparisons)
	}
	if wl.left%1024 == 0 && wl.ctx != nil && wl.ctx.Err() != nil {
		panic(wl.ctx.Err())
	}
}

// pattern compiles a pattern of a schema. Its size and its matches count as
// comparisons.
func (wl *workLimiter) pattern(text string) (jsonschema.Regexp, error) {
	size, instructions := compiled(text, "")
	if wl.left -= size / patternBytes; wl.left < 0 {
		return nil, errComparisons
	}
	re, err := regexp.Compile(text)
	return limitedPattern{re, instructions, wl}, err
}

// Work on patterns that counts as one comparison.
const (
	patternBytes = 256  // bytes of a compiled pattern
	patternSteps = 1024 // instructions executed
)

type limitedPattern struct {
	jsonschema.Regexp

	instructions int
	limiter      *workLimiter
}

// MatchString implements jsonschema.Regexp.
func (p limitedPattern) MatchString(text string) bool {
	if p.limiter.left -= product(p.instructions, len(text)) / patternSteps; p.limiter.left < 0 {
		panic(errComparisons)
	}
	return p.Regexp.MatchString(text)
}

// compile compiles a schema. It returns the references that it has removed
// because they lead out of the schema.
func compile(content []byte, wl *workLimiter) (schema *jsonschema.Schema, refs []string, err error) {
	err = guarded(func() error {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err != nil {
			return err
		}
		if hasLargeNumber(document) {
			return errLargeNumber
		}
		refs = removeExternalRefs(document)
		compiler := jsonschema.NewCompiler()
		compiler.UseRegexpEngine(wl.pattern)
		compiler.UseLoader(chartOnlyLoader{})
		compiler.RegisterVocabulary(&jsonschema.Vocabulary{
			URL:     "urn:k8splugin:judge",
			Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return wl, nil },
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
	_, refs, err := compile(content, &workLimiter{left: maxComparisons})
	if err != nil {
		why := err.Error()
		if line, column, wrong := syntax.JSON(content); wrong != "" {
			at, why = place{at.file, line}, fmt.Sprintf("column %d: %s", column, wrong)
		}
		l.report.add(at, "", "is not a JSON schema: %s", why)
	}
	for _, ref := range refs {
		l.report.warn("%s: refers to %s, which is not resolved; the values that it describes are not checked", at.file, ref)
	}
}

// checkValues validates the values of a chart and of its subcharts against
// their schemas.
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
	wl := &workLimiter{ctx: ctx, left: maxComparisons}
	schema, _, err := compile(content, wl)
	if err == nil {
		err = wl.validate(schema, values)
	}
	var found *jsonschema.ValidationError
	switch {
	case ctx.Err() != nil:
		return ended(ctx).at(place{file: schemaFile})
	case errors.As(err, &found):
		reportCauses(found, field, r)
	case err != nil:
		r.add(place{file: schemaFile}, field, "cannot be validated against the schema: %v", err)
	}
	return nil
}

func (wl *workLimiter) validate(schema *jsonschema.Schema, values map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errUnusable
			if known, ok := p.(error); ok && errors.Is(known, errComparisons) {
				err = errComparisons
			}
		}
	}()
	return schema.Validate(values)
}

// reportCauses reports the innermost causes of an error, each at its field.
func reportCauses(e *jsonschema.ValidationError, field string, r *report) {
	if len(e.Causes) == 0 || isChoice(e.ErrorKind) {
		r.add(place{}, fieldOf(field, e.InstanceLocation), "%s", reasonOf(e.ErrorKind))
	}
	if isChoice(e.ErrorKind) {
		return
	}
	for _, cause := range e.Causes {
		reportCauses(cause, field, r)
	}
}

// isChoice reports whether an error says that none of several alternatives
// fits. None of its causes alone explains it.
func isChoice(k jsonschema.ErrorKind) bool {
	switch k.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		return true
	}
	return false
}

// reasonOf describes why a value is invalid, without quoting the value.
func reasonOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return fmt.Sprintf("does not match the pattern %s", k.Want)
	case *kind.Format:
		return fmt.Sprintf("is not of the format %s", k.Want)
	case *kind.AnyOf:
		return "matches none of the alternatives of the schema"
	case *kind.OneOf:
		return "does not match exactly one of the alternatives of the schema"
	case *kind.Required:
		return "lacks " + strings.Join(quoted(k.Missing), ", ")
	case *kind.AdditionalProperties:
		return "has properties that the schema does not allow: " + strings.Join(quoted(k.Properties), ", ")
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

// fieldOf returns the path of a value, such as parameters.a[0].b.
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
