package nf

import (
	"fmt"
	"log/slog"
)

// Masked stands wherever a secret would be.
const Masked = "********"

// Secret is bytes that must never reach an answer, a log or an error. Every way
// of printing it gives Masked; only the stored JSON form and a conversion to
// []byte reveal it.
type Secret []byte

// Format prints Masked for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Masked)) }

// LogValue logs Masked.
func (Secret) LogValue() slog.Value { return slog.StringValue(Masked) }
