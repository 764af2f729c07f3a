package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// auditEntry is one entry of the audit log, as far as it is shown.
type auditEntry struct {
	Phase      string    `json:"phase"`
	Time       time.Time `json:"time"`
	Request    string    `json:"request_id"`
	Kind       string    `json:"identity_kind"`
	Identity   string    `json:"identity"`
	Remote     string    `json:"remote"`
	Method     string    `json:"method"`
	Route      string    `json:"route"`
	Permission string    `json:"permission"`
	Project    string    `json:"project"`
	Region     string    `json:"region"`
	Subjects   []string  `json:"subjects"`
	Status     int       `json:"status"`
	Outcome    string    `json:"outcome"`
	Operation  string    `json:"operation_id"`
	Missed     int       `json:"missed"`
}

func auditCommand(s *session) *cobra.Command {
	return s.noun("audit", "Read who asked for what, and what came of it", auditList(s))
}

func auditList(s *session) *cobra.Command {
	var q filters
	var since, until string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the entries of the audit log, the newest first",
		Args:  noArgs,
	}
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		query := q.values()
		for name, text := range map[string]string{"since": since, "until": until} {
			if text == "" {
				continue
			}
			t, err := s.instant(text)
			if err != nil {
				return usagef("--%s: %w", name, err)
			}
			query.Set(name, t)
		}
		p, err := c.list(ctx, at("audit"), "entries", query)
		if err != nil {
			return err
		}
		return printAll(s, p, auditColumns())
	})
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "", "not before this time, such as 2026-11-20T09:00:00Z, or 2h for two hours ago")
	flags.StringVar(&until, "until", "", "before this time")
	q.add(cmd, "identity", "identity", "by whoever has this name only")
	q.project(cmd)
	q.add(cmd, "region", "region", "in this region only")
	q.page(cmd, "100", "at most this many") // it is too long to be read to its end
	completeFlag(cmd, "region", s.ids(regions(), true))
	return cmd
}

// instant reads a time, or how long ago it was, as the server reads it.
func (s *session) instant(text string) (string, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return s.Now().Add(-ago).UTC().Format(time.RFC3339Nano), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", fmt.Errorf("%q is neither a time such as 2026-11-20T09:00:00Z nor a duration such as 2h", text)
	}
	return t.Format(time.RFC3339Nano), nil
}

func auditColumns() []column[auditEntry] {
	return []column[auditEntry]{
		{"TIME", false, func(e auditEntry) string { return e.Time.UTC().Format(time.RFC3339) }},
		{"WHO", false, func(e auditEntry) string { return strings.TrimPrefix(e.Kind+":"+e.Identity, ":") }},
		{"PHASE", false, func(e auditEntry) string { return e.Phase }},
		{"REQUEST", false, func(e auditEntry) string { return e.Method + " " + e.Route }},
		{"ABOUT", false, func(e auditEntry) string { return strings.Join(e.Subjects, ",") }},
		{"OUTCOME", false, func(e auditEntry) string { return e.Outcome }},
		{"STATUS", true, func(e auditEntry) string {
			if e.Status == 0 {
				return ""
			}
			return strconv.Itoa(e.Status)
		}},
		{"PERMISSION", true, func(e auditEntry) string { return e.Permission }},
		{"PROJECT", true, func(e auditEntry) string { return e.Project }},
		{"REGION", true, func(e auditEntry) string { return e.Region }},
		{"OPERATION", true, func(e auditEntry) string { return e.Operation }},
		{"FROM", true, func(e auditEntry) string { return e.Remote }},
		{"REQUEST ID", true, func(e auditEntry) string { return e.Request }},
		{"MISSED", true, func(e auditEntry) string {
			if e.Missed == 0 {
				return ""
			}
			return strconv.Itoa(e.Missed)
		}},
	}
}
