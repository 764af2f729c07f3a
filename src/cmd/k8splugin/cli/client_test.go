package cli

import "testing"

func TestValuesAreShownAsSent(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
	}{
		"Large":  {"a float64 does not hold every integer", `12345678901234567890`},
		"Zeros":  {"a number is printed as it was written", `[1.0,1e3]`},
		"Markup": {"output is not a web page", `{"a":"<b>&"}`},
		"Null":   {"null is a value", `{"a":null}`},
		"Empty":  {"an empty list is not null", `[]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v any
			if err := unmarshal([]byte(tc.text), &v); err != nil {
				t.Fatal(err)
			}
			if got := string(jsonOf(v)); got != tc.text {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.text)
			}
		})
	}
}

func TestUnmarshalRejects(t *testing.T) {
	for name, text := range map[string]string{"half a document": `{"a":`, "two documents": `{} {}`, "text after a document": `{}}`} {
		var v any
		if unmarshal([]byte(text), &v) == nil {
			t.Errorf("%s was accepted: %s", name, text)
		}
	}
}
