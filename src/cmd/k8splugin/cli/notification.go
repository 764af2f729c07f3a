package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// lastResult returns the result of the last attempt.
func lastResult(l wire.DeadLetter) string {
	switch {
	case l.LastError != "":
		return l.LastError
	case l.LastStatus != 0:
		return strconv.Itoa(l.LastStatus)
	}
	return ""
}

func notificationCommand(s *session) *cobra.Command {
	return s.noun("notification", "List, resend and delete dead letters",
		notificationList(s), notificationResend(s), s.deleteCommand("Delete dead letters", deadLetters()))
}

func deadLetters() catalogue {
	return catalogue{list: ask(api.NewListDeadLettersRequest(root, nil)), key: "dead_letters", fields: []string{"notification_id"}}
}

func notificationList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List dead letters", deadLetters(), deadLetterColumns)
	cmd.Long = `List dead letters: notifications that their subscribers did not accept in 20
attempts, and kubeconfigs of cloud regions that were handed over in vain. Their content is
not shown.`
	q.add(cmd, "instance", "vnf_id", "filter by instance, as the subscription names it")
	q.add(cmd, "subscription", "subscription", "filter by subscription")
	q.add(cmd, "region", "cloud_region_id", "filter by cloud region whose kubeconfig is handed over")
	q.pages(cmd)
	return cmd
}

func deadLetterColumns(now clock) []column[wire.DeadLetter] {
	return []column[wire.DeadLetter]{
		{"ID", false, func(l wire.DeadLetter) string { return l.ID }},
		{"INSTANCE", false, func(l wire.DeadLetter) string { return l.Instance }},
		{"SUBSCRIPTION", false, func(l wire.DeadLetter) string { return l.Subscription }},
		{"REGION", false, func(l wire.DeadLetter) string { return l.Region }},
		{"ATTEMPTS", false, func(l wire.DeadLetter) string { return strconv.Itoa(l.Attempts) }},
		{"ABANDONED", false, func(l wire.DeadLetter) string { return now.age(l.Died) }},
		{"AGE", false, func(l wire.DeadLetter) string { return now.age(l.Created) }},
		{"LAST RESULT", false, lastResult},
		{"NEXT ATTEMPT", true, func(l wire.DeadLetter) string { return now.until(l.Due) }},
	}
}

func notificationResend(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "resend ID...",
		Short:             "Resend dead letters",
		Args:              someNames,
		ValidArgsFunction: s.ids(deadLetters(), true),
		RunE: s.run(func(ctx context.Context, c *client, ids []string) error {
			sent := page{key: deadLetters().key}
			var failed multiError
			for _, id := range ids {
				a, err := c.call(ctx, ask(api.NewResendDeadLetterRequest(root, id)))
				if err != nil {
					failed = append(failed, err)
					continue
				}
				sent.join(a)
			}
			if sent.parts > 0 {
				if err := printAll(s.out, sent, deadLetterColumns); err != nil {
					failed = append(failed, err)
				}
			}
			return failed.orNil()
		}),
	}
}
