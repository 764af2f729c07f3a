package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/simulator/onap"
)

const stopTime = time.Minute // for the service to drain

// upFlags are the flags of up.
type upFlags struct {
	kubeconfig, program, sample string
	once                        bool
}

func upCommand() *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use: "up --kubeconfig FILE", Short: "Start the simulators and the service, and run one flow with all of them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster to use (required)")
	flags.StringVar(&f.program, "program", "bin/k8splugin", "program of the service")
	flags.StringVar(&f.sample, "sample", "deployments/samples/vfw-onap", "folder with the charts of the firewall")
	flags.BoolVar(&f.once, "once", false, "end after the flow")
	_ = cmd.MarkFlagRequired("kubeconfig") // it is defined above
	return cmd
}

func (f *upFlags) run(ctx context.Context, stdout io.Writer) (err error) {
	kubeconfig, err := os.ReadFile(f.kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read --kubeconfig: %w", err)
	}
	dir, err := os.MkdirTemp("", "k8splugin-onap-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	around, err := onap.Start(ctx, dir, onap.Place{Owner: "k8s", Region: "edge", Tenant: "trial"}, kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot start the simulators: %w", err)
	}
	defer around.Close()
	service, err := startService(ctx, f.program, dir, around.Arguments())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.stop()) }()
	urls := around.URLs()
	urls["service"] = service.url
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		fmt.Fprintf(stdout, "%-8s %s\n", name, urls[name])
	}
	// The objects of a run that was interrupted are still in the cluster.
	suffix := "-" + strings.ToLower(rand.Text()[:6])
	flow, err := around.Flow(onap.Config{
		Service: service.url, Sample: os.DirFS(f.sample), Namespace: "vfw" + suffix, Suffix: suffix, Interval: time.Second,
		Report: func(line string) { fmt.Fprintln(stdout, "-", line) },
	})
	if err == nil {
		err = flow.Run(ctx)
	}
	if err != nil {
		return fmt.Errorf("the flow has failed: %w", err)
	}
	if wrong := around.Violations(); len(wrong) > 0 {
		return fmt.Errorf("ONAP's components would ignore a part of these requests: %q", wrong)
	}
	if f.once {
		return nil
	}
	fmt.Fprintln(stdout, "\nThe simulators and the service run until you press Ctrl-C. A user of A&AI is so, with the password so-only-for-trials.")
	<-ctx.Done()
	return nil
}

// child is the service as a child process.
type child struct {
	url    string
	cmd    *exec.Cmd
	output sync.WaitGroup
}

// startService starts the service with arguments, on a free port and with its data in a
// folder, and waits until it listens. Its log is in the folder, too.
func startService(ctx context.Context, program, dir string, args []string) (*child, error) {
	args = slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--log-format", "json"}, args)
	// The child is stopped by stop, after the context, so that it can drain.
	c := &child{cmd: exec.CommandContext(context.WithoutCancel(ctx), program, args...)}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches this program only
	pipe, err := c.cmd.StderrPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the service: %w", err)
	}
	address, last := make(chan string, 1), ""
	c.output.Go(func() {
		defer close(address)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			var line struct{ Msg, Address string }
			if last = lines.Text(); json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "service listening" {
				address <- line.Address
			}
		}
		_, _ = io.Copy(io.Discard, pipe) // a line that is too long ends the scanner only
	})
	select {
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), c.stop())
	case at, listens := <-address:
		if !listens {
			c.output.Wait()
			return nil, fmt.Errorf("cannot start the service: %s: %w", last, c.cmd.Wait())
		}
		c.url = "http://" + at
		return c, nil
	}
}

// stop stops the service, and kills it if it does not end in time.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	kill := time.AfterFunc(stopTime, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	c.output.Wait()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the service has ended with an error: %w", err)
	}
	return nil
}
