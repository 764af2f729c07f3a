package cli

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// letter is a notification that could not be delivered, or that is on its way
// again.
type letter struct {
	ID           string    `json:"letter_id"`
	Instance     string    `json:"vnf_id"`
	Subscription string    `json:"subscription"`
	Created      time.Time `json:"created_at"`
	Attempts     int       `json:"attempts"`
	Due          time.Time `json:"due_at"`
	Died         time.Time `json:"died_at"`
	LastStatus   int       `json:"last_status"`
	LastError    string    `json:"last_error"`
}

// answered says what became of the last attempt.
func (l letter) answered() string {
	switch {
	case l.LastError != "":
		return l.LastError
	case l.LastStatus != 0:
		return strconv.Itoa(l.LastStatus)
	}
	return ""
}

func notificationCommand(s *session) *cobra.Command {
	return s.noun("notification", "See the notifications that were given up, and send or forget them",
		notificationList(s), notificationResend(s), notificationDiscard(s))
}

func letters() catalogue {
	return catalogue{at("notifications", "dead"), "letters", []string{"letter_id"}}
}

func notificationList(s *session) *cobra.Command {
	var q filters
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the notifications that were given up",
		Long: `List the notifications that were given up: dead letters, which their subscribers
did not take for most of a day. What they say is not shown.`,
		Args: noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			p, err := c.list(ctx, letters().path, letters().key, q.values())
			if err != nil {
				return err
			}
			return printAll(s, p, letterColumns(s))
		}),
	}
	q.add(cmd, "instance", "vnf_id", "of this instance only, as the subscription names it")
	q.add(cmd, "subscription", "subscription", "of this subscription only")
	q.pages(cmd)
	return cmd
}

func letterColumns(s *session) []column[letter] {
	return []column[letter]{
		{"ID", false, func(l letter) string { return l.ID }},
		{"INSTANCE", false, func(l letter) string { return l.Instance }},
		{"SUBSCRIPTION", false, func(l letter) string { return l.Subscription }},
		{"ATTEMPTS", false, func(l letter) string { return strconv.Itoa(l.Attempts) }},
		{"DEAD", false, func(l letter) string { return s.age(l.Died) }},
		{"AGE", false, func(l letter) string { return s.age(l.Created) }},
		{"ANSWERED", false, letter.answered},
		{"DUE", true, func(l letter) string { return s.until(l.Due) }},
	}
}

func notificationResend(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "resend ID...",
		Short:             "Put dead letters on their way again",
		Args:              someNames,
		ValidArgsFunction: s.ids(letters(), true),
		RunE: s.run(func(ctx context.Context, c *client, ids []string) error {
			sent := page{key: letters().key}
			var failed several
			for _, id := range ids {
				a, err := c.call(ctx, request{method: http.MethodPost, path: at("notifications", "dead", id, "resend")})
				if err != nil {
					failed = append(failed, err)
					continue
				}
				sent.join(a)
			}
			if sent.parts > 0 {
				if err := printAll(s, sent, letterColumns(s)); err != nil {
					failed = append(failed, err)
				}
			}
			return failed.orNil()
		}),
	}
}

func notificationDiscard(s *session) *cobra.Command {
	cmd := s.removal("Forget dead letters", letters())
	cmd.Use, cmd.Aliases = "discard ID...", []string{"remove", "delete"}
	return cmd
}
