package nf

import (
	"fmt"
	"log/slog"
)

// Masked replaces every secret in output.
const Masked = "********"

// Secret is bytes that must never appear in a response, a log or an error.
// Formatting prints Masked; only the stored JSON form and a conversion to
// []byte reveal it.
type Secret []byte

// Format prints Masked for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Masked)) }

// LogValue logs Masked.
func (Secret) LogValue() slog.Value { return slog.StringValue(Masked) }
