package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// completionTime is the timeout of a shell completion.
const completionTime = 2 * time.Second

// catalogue is a collection of objects that have ids.
type catalogue struct {
	list   request
	key    string   // of the items in a page
	fields []string // of an item, to complete
	about  []string // fields that describe an item
	query  url.Values
}

// item returns the request for one object.
func (from catalogue) item(method, id string) request {
	r := from.list
	r.method, r.path = method, r.path+"/"+url.PathEscape(id)
	return r
}

func regions() catalogue {
	return catalogue{list: ask(api.NewListCloudRegionsRequest(root, nil)), key: "cloud_regions", fields: []string{"cloud_region_id"}, about: []string{"server", "description"}}
}

func packages() catalogue {
	return catalogue{list: ask(api.NewListPackagesRequest(root, nil)), key: "packages", fields: []string{"csar_id"}, about: []string{"name", "version", "state"}}
}

func instances() catalogue {
	return catalogue{list: ask(api.NewListVnfInstancesRequest(root, nil)), key: "vnf_instances", fields: []string{"vnf_instance_name", "vnf_id"}, about: []string{"vnf_instance_name", "cloud_region_id", "namespace", "state"}}
}

func operations() catalogue {
	return catalogue{list: ask(api.NewListOperationsRequest(root, nil)), key: "operations", fields: []string{"operation_id"}, about: []string{"verb", "vnf_id", "state", "accepted_at"}}
}

// instanceOperations returns the operations that can be retried or undone.
func instanceOperations() catalogue {
	all := operations()
	all.query = url.Values{"subject": {string(nf.InstanceSubject)}}
	return all
}

// ids completes ids of a collection, for the first argument or for every one.
func (s *session) ids(from catalogue, every bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !every {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.words(cmd.Context(), from), cobra.ShellCompDirectiveNoFileComp
	}
}

// words returns the ids in a collection, or nothing on error.
func (s *session) words(ctx context.Context, from catalogue) []cobra.Completion {
	c, err := s.connection.client(ctx)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	p, err := c.list(ctx, from, from.query)
	if err != nil {
		return nil
	}
	items, err := decodeAll[map[string]json.RawMessage](p)
	if err != nil {
		return nil
	}
	var words []cobra.Completion
	for _, item := range items {
		about := strings.Join(texts(item, from.about), " · ")
		for _, word := range texts(item, from.fields) {
			words = append(words, cobra.CompletionWithDesc(word, flat(about)))
		}
	}
	return words
}

// texts returns the fields of an item that are texts and not empty.
func texts(item map[string]json.RawMessage, fields []string) (out []string) {
	for _, field := range fields {
		var text string
		if json.Unmarshal(item[field], &text) == nil && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// fixed completes one of the words.
func fixed(words ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag registers a flag's completion. It ignores the only possible
// errors: a missing flag and a second registration.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}
