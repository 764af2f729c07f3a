package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func auditCommand(s *session) *cobra.Command {
	return s.noun("audit", "Read the audit log", auditList(s))
}

func auditList(s *session) *cobra.Command {
	var q filters
	var since, until string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List audit log entries, newest first",
		Example: "  k8splugin audit list --since 2h --identity anna",
		Args:    noArgs,
	}
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		query := q.values()
		for name, text := range map[string]string{"since": since, "until": until} {
			if text == "" {
				continue
			}
			t, err := s.out.clock.instant(text)
			if err != nil {
				return usagef("--%s: %w", name, err)
			}
			query.Set(name, t)
		}
		p, err := c.list(ctx, catalogue{list: ask(api.NewListAuditRequest(root, nil)), key: "entries"}, query)
		if err != nil {
			return err
		}
		return printAll(s.out, p, auditColumns)
	})
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "", "earliest time (inclusive), such as 2026-11-20T09:00:00Z, or 2h for two hours ago")
	flags.StringVar(&until, "until", "", "latest time (exclusive), in the format of --since")
	q.add(cmd, "identity", "identity", "filter by the name of the identity")
	q.project(cmd)
	q.add(cmd, "region", "region", "filter by region")
	q.page(cmd, "100", "maximum number of entries") // the log is too long for all of it by default
	completeFlag(cmd, "region", s.ids(regions(), true))
	return cmd
}

// instant converts a time, or a duration before now, to the server's time
// format.
func (now clock) instant(text string) (string, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now().Add(-ago).UTC().Format(time.RFC3339Nano), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", fmt.Errorf("must be a time such as 2026-11-20T09:00:00Z or a duration such as 2h, got %q", text)
	}
	return t.Format(time.RFC3339Nano), nil
}

func auditColumns(clock) []column[wire.AuditEntry] {
	return []column[wire.AuditEntry]{
		{"TIME", false, func(e wire.AuditEntry) string { return e.Time.UTC().Format(time.RFC3339) }},
		{"IDENTITY", false, func(e wire.AuditEntry) string { return strings.Trim(e.IdentityKind+":"+e.Identity, ":") }},
		{"PHASE", false, func(e wire.AuditEntry) string { return string(e.Phase) }},
		{"REQUEST", false, func(e wire.AuditEntry) string { return e.Method + " " + e.Route }},
		{"SUBJECTS", false, func(e wire.AuditEntry) string { return strings.Join(e.Subjects, ",") }},
		{"OUTCOME", false, func(e wire.AuditEntry) string { return e.Outcome }},
		{"OPERATION", false, func(e wire.AuditEntry) string { return e.Operation }},
		{"STATUS", true, func(e wire.AuditEntry) string {
			if e.Status == 0 {
				return ""
			}
			return strconv.Itoa(e.Status)
		}},
		{"PERMISSION", true, func(e wire.AuditEntry) string { return string(e.Permission) }},
		{"PROJECT", true, func(e wire.AuditEntry) string { return e.Project }},
		{"REGION", true, func(e wire.AuditEntry) string { return e.Region }},
		{"REMOTE ADDRESS", true, func(e wire.AuditEntry) string { return e.Remote }},
		{"REQUEST ID", true, func(e wire.AuditEntry) string { return e.Request }},
		{"SUPPRESSED", true, func(e wire.AuditEntry) string {
			if e.Missed == 0 {
				return ""
			}
			return strconv.Itoa(e.Missed)
		}},
	}
}
