package main

import (
	"fmt"
	"os"

	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// readinessRules returns the rules for custom resources: those of the operator's
// file, and the shipped ones.
func (c Config) readinessRules() (*readiness.Rules, error) {
	if c.ReadinessRules == "" {
		return readiness.Shipped(), nil
	}
	content, err := os.ReadFile(c.ReadinessRules)
	if err != nil {
		return nil, fmt.Errorf("cannot read the readiness rules: %w", err)
	}
	rules, err := readiness.New(c.ReadinessRules, content)
	if err != nil {
		return nil, fmt.Errorf("cannot use the readiness rules: %w", err)
	}
	return rules, nil
}
