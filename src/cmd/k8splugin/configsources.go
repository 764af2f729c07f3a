package main

import (
	"fmt"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

func loadFile(k *koanf.Koanf, flags *pflag.FlagSet, getenv func(string) string, settings map[string]string) error {
	name, _ := flags.GetString("config")
	if name == "" {
		name = getenv(envPrefix + "CONFIG")
	}
	if name == "" {
		return nil
	}
	if err := k.Load(file.Provider(name), yaml.Parser()); err != nil {
		return fmt.Errorf("cannot read the configuration file %s: %w", name, err)
	}
	for _, key := range k.Keys() {
		if flags.Lookup(key) == nil || key == "config" {
			return fmt.Errorf("cannot use the configuration file %s: unknown setting %q", name, key)
		}
		settings[key] = name
	}
	return nil
}

func loadEnvironment(k *koanf.Koanf, getenv func(string) string, flags *pflag.FlagSet, settings map[string]string) error {
	var vars []string
	flags.VisitAll(func(f *pflag.Flag) {
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := getenv(name); value != "" && f.Name != "config" {
			vars = append(vars, name+"="+value)
			settings[f.Name] = name
		}
	})
	return k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return vars },
		TransformFunc: func(name, value string) (string, any) {
			return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-"), value
		},
	}), nil)
}
