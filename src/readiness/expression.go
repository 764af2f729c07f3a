package readiness

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

const (
	maxExpression = 4 << 10 // bytes of one expression
	maxCost       = 100_000 // CEL's cost of one evaluation; at most about 10 ms
)

// unbounded are functions whose result or time may exceed any limit in one call,
// before their cost is counted.
var unbounded = [...]string{"replace", "join", "format", "strings.quote", "distinct", "lists.range"}

// newEnvironment returns the environment of all expressions. Its variable is
// object.
func newEnvironment() (*cel.Env, error) {
	pair := []*cel.Type{cel.DynType, cel.StringType}
	return cel.NewEnv(
		cel.Variable("object", cel.DynType), cel.OptionalTypes(), ext.Strings(), ext.Lists(),
		cel.Function("cond", cel.Overload("cond_object_type", pair, cel.StringType, ofCondition(func(_, c map[string]any) ref.Val {
			return types.String(text(c, "status"))
		}))),
		cel.Function("why", cel.Overload("why_object_type", pair, cel.StringType, ofCondition(func(_, c map[string]any) ref.Val {
			return types.String(text(c, "reason"))
		}))),
		cel.Function("fresh", cel.Overload("fresh_object_type", pair, cel.BoolType, ofCondition(func(object, c map[string]any) ref.Val {
			observed, given := number(c, "observedGeneration")
			generation, _ := number(object, "metadata", "generation")
			return types.Bool(c != nil && (!given || observed >= generation))
		}))),
		cel.Function("seen", cel.Overload("seen_object", []*cel.Type{cel.DynType}, cel.BoolType, cel.UnaryBinding(func(value ref.Val) ref.Val {
			object, err := objectOf(value)
			if err != nil {
				return types.WrapErr(err)
			}
			observed, given := number(object, "status", "observedGeneration")
			generation, _ := number(object, "metadata", "generation")
			return types.Bool(given && observed >= generation)
		}))),
	)
}

// ofCondition binds a function of an object and the type of a condition. The
// condition is nil if the object does not have it.
func ofCondition(result func(object, condition map[string]any) ref.Val) cel.OverloadOpt {
	return cel.BinaryBinding(func(value, kind ref.Val) ref.Val {
		object, err := objectOf(value)
		if err != nil {
			return types.WrapErr(err)
		}
		name, _ := kind.Value().(string)
		return result(object, condition(object, name))
	})
}

func objectOf(value ref.Val) (map[string]any, error) {
	object, ok := value.Value().(map[string]any)
	if !ok {
		return nil, errors.New("the first argument must be object")
	}
	return object, nil
}

// fault is why an expression cannot be compiled.
type fault struct {
	field   string // of the judgment
	line    int    // of the expression, from 1
	message string
}

func (f *fault) Error() string { return f.message }

// expression is one compiled expression. The zero value is one that is not given.
type expression struct{ program cel.Program }

// compile returns the program of an expression with results of a type. An empty
// text is an expression that is not given. The error is a *fault.
func compile(env *cel.Env, source string, result *cel.Type) (expression, error) {
	if source == "" {
		return expression{}, nil
	}
	if len(source) > maxExpression {
		return expression{}, &fault{"", 1, fmt.Sprintf("has more than %d bytes", maxExpression)}
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return expression{}, &fault{"", max(1, first.Location.Line()), first.Message}
	}
	if is := checked.OutputType(); !is.IsExactType(result) && is.Kind() != types.DynKind {
		return expression{}, &fault{"", 1, fmt.Sprintf("must be a %s, and is a %s", result, is)}
	}
	root := ast.NavigateAST(checked.NativeRep())
	for _, name := range unbounded {
		if len(ast.MatchDescendants(root, ast.FunctionMatcher(name))) > 0 {
			return expression{}, &fault{"", 1, "must not use the function " + name + ", whose result may be of any size"}
		}
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return expression{}, &fault{"", 1, err.Error()}
	}
	return expression{program}, nil
}

// evaluate returns the result of an expression, or otherwise if it is not given.
func evaluate[T bool | string](e expression, object map[string]any, otherwise T) (T, error) {
	if e.program == nil {
		return otherwise, nil
	}
	value, _, err := e.program.Eval(map[string]any{"object": object})
	if err != nil {
		return otherwise, err
	}
	result, ok := value.Value().(T)
	if !ok {
		return otherwise, fmt.Errorf("the result must be a %T, and is a %s", otherwise, value.Type().TypeName())
	}
	return result, nil
}
