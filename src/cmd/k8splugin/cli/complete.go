package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"
)

// completionTime bounds what a press of the tab key may take.
const completionTime = 2 * time.Second

// catalogue is a collection whose ids can be completed.
type catalogue struct {
	path, key string
	fields    []string // of an item: the words to complete
}

func regions() catalogue {
	return catalogue{at("cloud_regions"), "cloud_regions", []string{"cloud_region_id"}}
}

func packages() catalogue { return catalogue{at("packages"), "packages", []string{"csar_id"}} }

func instances() catalogue {
	return catalogue{at("vnf_instances"), "vnf_instances", []string{"vnf_instance_name", "vnf_id"}}
}

func operations() catalogue {
	return catalogue{at("operations"), "operations", []string{"operation_id"}}
}

// ids completes the first argument, or every one, from a collection.
func (s *session) ids(from catalogue, every bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !every {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.words(cmd.Context(), from), cobra.ShellCompDirectiveNoFileComp
	}
}

// words are the ids in a collection; none when the server does not tell.
func (s *session) words(ctx context.Context, from catalogue) []cobra.Completion {
	c, err := s.client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	p, err := c.list(ctx, from.path, from.key, nil)
	if err != nil {
		return nil
	}
	items, err := decodeAll[map[string]json.RawMessage](p)
	if err != nil {
		return nil
	}
	var words []cobra.Completion
	for _, item := range items {
		for _, field := range from.fields {
			var word string
			if json.Unmarshal(item[field], &word) == nil && word != "" {
				words = append(words, word)
			}
		}
	}
	return words
}

// fixed completes one of some words.
func fixed(words ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag gives a flag its completion. The only error there is, a flag
// that the command lacks or that was given one already, leaves things as they
// are.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}
