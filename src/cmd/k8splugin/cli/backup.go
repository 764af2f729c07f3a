package cli

import (
	"bytes"
	"context"
	"errors"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func backupCommand(s *session) *cobra.Command {
	return s.noun("backup", "Create, check and restore encrypted backups", backupDownload(s))
}

func backupDownload(s *session) *cobra.Command {
	var body wire.BackupRequest
	cmd := &cobra.Command{
		Use:   "download FILE --recipient RECIPIENT",
		Short: "Download a backup of a running service",
		Long: `Download a backup of a running service. Only the holder of the recipient's identity
can read it. If the backup cannot be completed, the command writes no file. If the
service uses MongoDB, the backup may have records of different moments: stop all
replicas, and use "backup create" instead.`,
		Example: "  k8splugin backup download monday.age --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
		Args:    oneName,
	}
	cmd.Flags().StringVar(&body.Recipient, "recipient", "", "age recipient (age1…) to encrypt the backup for")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if body.Recipient == "" {
			return misused(cmd, errors.New("--recipient is required"))
		}
		r := ask(api.NewCreateBackupRequestWithBody(root, nil, jsonMedia, nil))
		r.body = bytes.NewReader(jsonOf(body))
		res, err := c.open(ctx, r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		return s.out.save(ctx, c, res.Body, args[0])
	})
	return cmd
}
