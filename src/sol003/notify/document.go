package notify

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// documents makes the documents of notifications, as SOL003 describes them.
type documents struct {
	endpoint string
	status   func(nf.Kind) int
}

// common is what all notifications have.
type common struct {
	ID           string                  `json:"id"`
	Type         nf.NoticeKind           `json:"notificationType"`
	Subscription string                  `json:"subscriptionId,omitempty"` // PM jobs and thresholds have none
	Time         time.Time               `json:"timeStamp"`
	Links        map[string]wire.VNFLink `json:"_links"`
}

// identifier is a VnfIdentifierCreationNotification or a VnfIdentifierDeletionNotification.
type identifier struct {
	common

	VNF string `json:"vnfInstanceId"`
}

// occurrence is a VnfLcmOperationOccurrenceNotification.
type occurrence struct {
	common

	Status     string                 `json:"notificationStatus"`
	State      nf.OccurrenceState     `json:"operationState"`
	VNF        string                 `json:"vnfInstanceId"`
	Operation  nf.OccurrenceOperation `json:"operation"`
	Automatic  bool                   `json:"isAutomaticInvocation"`
	Verbosity  string                 `json:"verbosity,omitempty"` // not in version 1
	Occurrence string                 `json:"vnfLcmOpOccId"`
	VNFCs      []wire.VNFCChange      `json:"affectedVnfcs,omitempty"`
	wire.VNFModifications
	Error *problem `json:"error,omitempty"`
}

// problem is a ProblemDetails.
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// of returns the document of a notice for a subscription. The id of a notification is the
// same for all subscriptions.
func (d documents) of(n nf.Notice, s nf.VNFSubscription, short bool) any {
	out := common{
		ID: nf.UUIDOf("k8splugin.io/notification/" + n.ID), Type: n.Kind, Subscription: s.ID, Time: n.Time.UTC(),
		Links: map[string]wire.VNFLink{"subscription": d.link(s.Interface, "subscriptions", s.ID)},
	}
	switch {
	case n.PM != nil:
		return d.performance(out, n.VNF.ID, *n.PM)
	case n.Occurrence != nil:
		return d.occurrence(out, n, s, short)
	case n.Kind == nf.NoticeAlarm:
		return alarmed{out, wire.VNFAlarmOf(d.endpoint, *n.Alarm)}
	case n.Kind == nf.NoticeCleared:
		out.Links["alarm"] = d.link(s.Interface, "alarms", n.Alarm.ID)
		return cleared{out, n.Alarm.ID, n.Alarm.Cleared}
	}
	out.Links["vnfInstance"] = d.link(s.Interface, "vnf_instances", n.VNF.ID)
	return identifier{out, n.VNF.ID}
}

func (d documents) link(of nf.VNFInterface, resource, id string) wire.VNFLink {
	return wire.VNFLinkTo(d.endpoint, of, resource, id)
}

func (d documents) occurrence(with common, n nf.Notice, s nf.VNFSubscription, short bool) occurrence {
	o := n.Occurrence
	with.Links["vnfInstance"] = d.link(s.Interface, "vnf_instances", n.VNF.ID)
	with.Links["vnfLcmOpOcc"] = d.link(s.Interface, "vnf_lcm_op_occs", o.ID)
	out := occurrence{
		common: with, Status: "RESULT", State: o.State, VNF: n.VNF.ID, Operation: o.Operation, Automatic: o.Automatic, Occurrence: o.ID,
	}
	if o.State.Running() {
		out.Status = "START"
	}
	if s.Interface == nf.VNFLifecycle {
		out.Verbosity = "FULL"
		if short {
			out.Verbosity = "SHORT"
		}
	}
	if out.Status == "RESULT" && o.Failure != nil && o.State != nf.OccurrenceCompleted {
		out.Error = &problem{d.status(o.Failure.Kind), message(*o.Failure, n.VNF.ID)}
	}
	if out.Status == "RESULT" && !short {
		out.VNFModifications, out.VNFCs = wire.VNFModificationsOf(*o), wire.VNFCChangesOf(*o)
	}
	return out
}

// message returns the message of a failure without the names of other instances, which
// may belong to another project.
func message(f nf.Failure, vnf string) string {
	mentions, _ := nf.FilterMentions(f.Mentions, func(id string) (bool, error) { return id != vnf, nil }) // the function returns no error
	return nf.Text{Message: f.Message, Mentions: mentions}.String()
}
