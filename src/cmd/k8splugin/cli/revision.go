package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// revision is one version of an instance, as far as it is shown.
type revision struct {
	Number      int                        `json:"number"`
	InForce     bool                       `json:"in_force"`
	Restores    int                        `json:"restores"`
	Package     string                     `json:"csar_id"`
	Digest      string                     `json:"package_digest"`
	Description string                     `json:"vnf_instance_description"`
	Parameters  map[string]json.RawMessage `json:"parameters"`
	Labels      map[string]string          `json:"labels"`
	Operation   string                     `json:"operation_id"`
	Created     time.Time                  `json:"created_at"`
}

func instanceRevisions(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "revisions ID|NAME",
		Short:             "List what an instance was, and is",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			i, _, err := c.find(ctx, args[0])
			if err != nil {
				return err
			}
			p, err := c.list(ctx, at("vnf_instances", i.ID, "revisions"), "revisions", nil)
			if err != nil {
				return err
			}
			return printAll(s, p, revisionColumns(s))
		}),
	}
}

func revisionColumns(s *session) []column[revision] {
	return []column[revision]{
		{"REVISION", false, func(r revision) string { return strconv.Itoa(r.Number) }},
		{"IN FORCE", false, func(r revision) string {
			if r.InForce {
				return "yes"
			}
			return ""
		}},
		{"RESTORES", false, func(r revision) string {
			if r.Restores == 0 {
				return ""
			}
			return strconv.Itoa(r.Restores)
		}},
		{"PACKAGE", false, func(r revision) string { return r.Package }},
		{"AGE", false, func(r revision) string { return s.age(r.Created) }},
		{"DESCRIPTION", false, func(r revision) string { return r.Description }},
		{"OPERATION", true, func(r revision) string { return r.Operation }},
		{"PARAMETERS", true, func(r revision) string { return jsonPairs(r.Parameters) }},
		{"LABELS", true, func(r revision) string { return pairsOf(r.Labels) }},
		{"DIGEST", true, func(r revision) string { return r.Digest }},
	}
}

// jsonPairs prints values as name=value, each as JSON.
func jsonPairs(m map[string]json.RawMessage) string {
	texts := make(map[string]string, len(m))
	for name, raw := range m {
		texts[name] = string(raw)
	}
	return pairsOf(texts)
}

func instanceRollback(s *session) *cobra.Command {
	var w waiting
	var k consent
	var m mannerFlags
	var to int
	var dry bool
	cmd := &cobra.Command{
		Use:   "rollback ID|NAME",
		Short: "Return an instance to an earlier revision",
		Long: `Return an instance to an earlier revision: the one before that in force, or the
one that --to names. It is applied as it was then, and makes a new revision.` + waitHelp + confirmHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	cmd.Flags().IntVar(&to, "to", 0, "number of the revision, as \"instance revisions\" lists them")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "tell what would be done, and do nothing")
	m.define(cmd)
	m.defineOnFailure(cmd, "undo")
	w.define(cmd)
	k.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		if cmd.Flags().Changed("to") {
			if to < 1 {
				return usagef("--to is the number of a revision, from 1")
			}
			body["revision"] = to
		}
		if err := m.into(body); err != nil {
			return err
		}
		i, _, err := c.find(ctx, args[0])
		if err != nil {
			return err
		}
		r := request{method: http.MethodPost, path: at("vnf_instances", i.ID, "rollback")}
		if dry {
			return s.dryRun(ctx, c, r, body)
		}
		return s.change(ctx, c, r, body, how{w, k})
	})
	return cmd
}
