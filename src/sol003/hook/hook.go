package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/sol003/installer"
)

// Config configures Hooks. All fields but Now are required.
type Config struct {
	SSH  site.Runner
	Send outbox.Send
	File func(ctx context.Context, pkg, name string) ([]byte, error) // in the archive of a package
	Now  func() time.Time                                            // default time.Now
}

// Hooks runs scripts. It is safe for concurrent use.
type Hooks struct{ cfg Config }

// New returns Hooks.
func New(cfg Config) (*Hooks, error) {
	if cfg.SSH == nil || cfg.Send == nil || cfg.File == nil {
		return nil, errors.New("cannot create the hooks of VNFs: SSH, Send and File are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Hooks{cfg}, nil
}

// Check returns nf.Invalid if the parameters of a request lack what a script needs.
func (h *Hooks) Check(call nf.VNFHook) error {
	if call.Type != nf.SSHScript {
		return nil
	}
	_, _, err := hostsOf(call)
	return err
}

// Run runs a script, and waits until it ends or its timeout is over. Tell gets its output. It
// returns nf.Failed if it fails, and nf.Timeout.
func (h *Hooks) Run(ctx context.Context, call nf.VNFHook, tell func(nf.LogEntry) error) error {
	content, err := h.cfg.File(ctx, call.Package, call.File)
	if err != nil {
		return fmt.Errorf("cannot read the script %s: %w", call.File, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, call.Timeout, &nf.Error{
		Kind: nf.Timeout, Op: "run", Subject: "the script of operation " + call.Operation, Err: fmt.Errorf("it did not end within %s", call.Timeout),
	})
	defer cancel()
	if call.Type == nf.SSHScript {
		err = h.ssh(limited, call, content, tell)
	} else {
		err = h.post(limited, call, content, tell)
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return context.Cause(limited)
	}
	return err
}

// document is what a script gets, as a Job gets it.
func document(call nf.VNFHook) map[string]any {
	return map[string]any{
		"operation": call.Operation, "vnfInstanceId": call.VNF, "vnfLcmOpOccId": call.Occurrence, "inputs": call.Inputs, "additionalParams": call.Params,
	}
}

// hostsOf returns the hosts of a request with their credentials.
func hostsOf(call nf.VNFHook) ([]nf.SiteHost, map[string]nf.HostCredential, error) {
	hosts, logins, err := installer.Hosts(call.Secret[nf.HookHostsParameter], "additionalParams."+nf.HookHostsParameter)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot run the script of operation %s: %w", call.Operation, err)
	}
	return hosts, logins, nil
}

// ssh runs a script on each host of the request, one after another.
func (h *Hooks) ssh(ctx context.Context, call nf.VNFHook, content []byte, tell func(nf.LogEntry) error) error {
	hosts, logins, err := hostsOf(call)
	if err != nil {
		return err
	}
	job := site.Job{
		Action:  site.Run,
		Site:    nf.Site{ID: call.VNF, UID: call.ID, Driver: nf.SiteByScript, EveryHost: true, Hosts: hosts, Parameters: document(call)},
		Secrets: nf.SiteSecrets{Script: content, Hosts: logins},
	}
	for e, err := range h.cfg.SSH.Run(ctx, job) {
		if err != nil {
			return err
		}
		if e.Kind == "" {
			continue
		}
		if err := tell(e.LogEntry); err != nil {
			return err
		}
	}
	return nil
}

// longestURL is the most bytes of a URL.
const longestURL = 2 << 10

// pause is the time between two requests to a webhook that is not available.
const pause = 2 * time.Second

// post sends a request to a webhook, and repeats it while the webhook is not available. The
// file has its URL.
func (h *Hooks) post(ctx context.Context, call nf.VNFHook, content []byte, tell func(nf.LogEntry) error) error {
	subject := "webhook of operation " + call.Operation
	target, err := url.Parse(strings.TrimSpace(string(content[:min(len(content), longestURL)])))
	if err != nil || target.Host == "" || target.User != nil || target.Scheme != "https" && target.Scheme != "http" {
		return nf.E(nf.Invalid, "send", subject, nf.Violations{{File: call.File, Message: "is not a URL of http or https, without a user"}})
	}
	body, err := json.Marshal(document(call))
	if err != nil {
		return fmt.Errorf("cannot encode the request to the %s: %w", subject, err)
	}
	header := map[string]string{"Content-Type": "application/json", outbox.DeliveryHeader: call.ID}
	if secret, _ := call.Secret[nf.HookSecretParameter].(string); secret != "" {
		header[outbox.TimestampHeader] = strconv.FormatInt(h.cfg.Now().Unix(), 10)
		header[outbox.SignatureHeader] = outbox.Sign([]byte(secret), header[outbox.TimestampHeader], body)
	}
	req := outbox.Request{Method: http.MethodPost, URL: target.String(), Header: header, Body: body}
	for {
		status, err := h.cfg.Send(ctx, req)
		said := nf.LogEntry{Kind: nf.EventNote, Message: fmt.Sprintf("the %s responded with status %d", subject, status)}
		if err != nil {
			said.Message = fmt.Sprintf("the %s did not respond", subject)
		}
		if failed := tell(said); failed != nil {
			return failed
		}
		switch {
		case err == nil && status/100 == 2:
			return nil
		case errors.Is(err, outbound.ErrNotAllowed):
			return nf.E(nf.Failed, "run", "the "+subject, outbound.Plain(err))
		case err == nil && status != http.StatusTooManyRequests && status/100 != 5:
			return nf.E(nf.Failed, "run", "the "+subject, fmt.Errorf("it responded with status %d", status))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
