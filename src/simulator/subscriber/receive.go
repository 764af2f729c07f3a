package subscriber

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The attributes of each type of notification: those that it must have, and others.
var attributes = map[string]struct{ must, may []string }{
	"VnfLcmOperationOccurrenceNotification": {
		[]string{"notificationStatus", "operationState", "vnfInstanceId", "operation", "isAutomaticInvocation", "vnfLcmOpOccId"},
		[]string{"verbosity", "affectedVnfcs", "changedInfo", "modificationsTriggeredByVnfPkgChange", "error"},
	},
	"VnfIdentifierCreationNotification": {[]string{"vnfInstanceId"}, nil},
	"VnfIdentifierDeletionNotification": {[]string{"vnfInstanceId"}, nil},
	"AlarmNotification":                 {[]string{"alarm"}, nil},
	"AlarmClearedNotification":          {[]string{"alarmId", "alarmClearedTime"}, nil},
	"PerformanceInformationAvailableNotification": {
		[]string{"pmJobId", "objectType", "objectInstanceId"}, []string{"subObjectInstanceIds"},
	},
	"ThresholdCrossedNotification": {
		[]string{"thresholdId", "crossingDirection", "objectType", "objectInstanceId", "performanceMetric", "performanceValue"}, []string{"subObjectInstanceId"},
	},
}

// The attributes of all notifications, and the states that may follow a state.
var (
	common    = []string{"id", "notificationType", "subscriptionId", "timeStamp", "_links"}
	following = map[string][]string{
		"":             {"STARTING", "PROCESSING"},
		"STARTING":     {"PROCESSING", "ROLLED_BACK"},
		"PROCESSING":   {"COMPLETED", "FAILED_TEMP"},
		"FAILED_TEMP":  {"PROCESSING", "ROLLING_BACK", "FAILED"},
		"ROLLING_BACK": {"ROLLED_BACK", "FAILED_TEMP"},
		"COMPLETED":    {}, "FAILED": {}, "ROLLED_BACK": {},
	}
	results = []string{"COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK"}
)

// receive checks a notification, and keeps it.
func (s *Simulator) receive(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	var n map[string]any
	if err := decoder.Decode(&n); err != nil {
		return fmt.Errorf("it is not an object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it has more than one document")
	}
	kind := text(n, "notificationType")
	known, ok := attributes[kind]
	if !ok {
		return fmt.Errorf("its type %q is unknown", kind)
	}
	must := slices.Concat(common, known.must)
	if measured(kind) {
		must = slices.DeleteFunc(must, func(name string) bool { return name == "subscriptionId" })
	}
	for _, name := range must {
		if n[name] == nil || n[name] == "" {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for name := range n {
		if !slices.Contains(must, name) && !slices.Contains(known.may, name) {
			return fmt.Errorf("%s is unknown", name)
		}
	}
	if _, err := time.Parse(time.RFC3339, text(n, "timeStamp")); err != nil {
		return fmt.Errorf("timeStamp is not a time: %w", err)
	}
	if err := s.links(kind, n); err != nil {
		return err
	}
	return s.keep(kind, n, string(body))
}

// measured reports whether a notification is one of performance, which has no subscription.
func measured(kind string) bool {
	return kind == "PerformanceInformationAvailableNotification" || kind == "ThresholdCrossedNotification"
}

// links checks the links of a notification.
func (s *Simulator) links(kind string, n map[string]any) error {
	if measured(kind) {
		return s.performanceLinks(n)
	}
	api := map[string]string{"2.0.0": "/vnflcm/v2", "1.3.0": "/vnflcm/v1"}[s.cfg.Version]
	if strings.HasPrefix(kind, "Alarm") {
		api = "/vnffm/v1"
	}
	api = s.cfg.Links + api
	want := map[string]string{"subscription": api + "/subscriptions/" + text(n, "subscriptionId")}
	switch kind {
	case "VnfLcmOperationOccurrenceNotification":
		want["vnfLcmOpOcc"] = api + "/vnf_lcm_op_occs/" + text(n, "vnfLcmOpOccId")
		want["vnfInstance"] = api + "/vnf_instances/" + text(n, "vnfInstanceId")
	case "AlarmClearedNotification":
		want["alarm"] = api + "/alarms/" + text(n, "alarmId")
	case "AlarmNotification":
	default:
		want["vnfInstance"] = api + "/vnf_instances/" + text(n, "vnfInstanceId")
	}
	if got := linksOf(n); !maps.Equal(got, want) {
		return fmt.Errorf("the links are %v instead of %v", got, want)
	}
	return nil
}

// linksOf returns the links of a notification.
func linksOf(n map[string]any) map[string]string {
	links, _ := n["_links"].(map[string]any)
	got := map[string]string{}
	for name, value := range links {
		one, _ := value.(map[string]any)
		got[name] = text(one, "href")
	}
	return got
}

// performanceLinks checks the links and the direction of a notification of performance. The
// name of a report is in its link only.
func (s *Simulator) performanceLinks(n map[string]any) error {
	want := map[string]string{"objectInstance": s.cfg.Links + "/vnflcm/v2/vnf_instances/" + text(n, "objectInstanceId")}
	got := linksOf(n)
	if id := text(n, "thresholdId"); id != "" {
		want["threshold"] = s.cfg.Links + "/vnfpm/v2/thresholds/" + id
		if direction := text(n, "crossingDirection"); direction != "UP" && direction != "DOWN" {
			return fmt.Errorf("crossingDirection is %q", direction)
		}
	} else {
		want["pmJob"] = s.cfg.Links + "/vnfpm/v2/pm_jobs/" + text(n, "pmJobId")
		want["performanceReport"] = got["performanceReport"]
		if report, found := strings.CutPrefix(got["performanceReport"], want["pmJob"]+"/reports/"); !found || report == "" || strings.Contains(report, "/") {
			return fmt.Errorf("performanceReport is %q", got["performanceReport"])
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("the links are %v instead of %v", got, want)
	}
	return nil
}

// keep checks a notification against earlier ones.
func (s *Simulator) keep(kind string, n map[string]any, body string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := text(n, "subscriptionId") + "/" + text(n, "id")
	if before, repeated := s.received[name]; repeated {
		if before != body {
			return fmt.Errorf("it was %s before", before)
		}
		return nil
	}
	if kind == "VnfLcmOperationOccurrenceNotification" {
		if err := s.follow(n); err != nil {
			return err
		}
	}
	s.received[name] = body
	return nil
}

// follow checks the state of an occurrence. The subscription must not select states.
func (s *Simulator) follow(n map[string]any) error {
	occurrence, state := text(n, "subscriptionId")+"/"+text(n, "vnfLcmOpOccId"), text(n, "operationState")
	before := s.states[occurrence]
	if !slices.Contains(following[before], state) {
		return fmt.Errorf("state %s cannot follow %q", state, before)
	}
	wanted := "START"
	if slices.Contains(results, state) {
		wanted = "RESULT"
	}
	if text(n, "notificationStatus") != wanted {
		return fmt.Errorf("notificationStatus is not %s", wanted)
	}
	problem, _ := n["error"].(map[string]any)
	if must := state == "FAILED" || state == "FAILED_TEMP"; must && problem == nil || problem != nil && !must && state != "ROLLED_BACK" {
		return fmt.Errorf("error does not match state %s", state)
	}
	if problem != nil && (text(problem, "detail") == "" || problem["status"] == nil) {
		return errors.New("error has no status or no detail")
	}
	verbose := text(n, "verbosity")
	if (s.cfg.Version == "2.0.0") != (verbose == "FULL" || verbose == "SHORT") {
		return fmt.Errorf("verbosity is %q", verbose)
	}
	if err := checkChanges(n, wanted == "START" || verbose == "SHORT"); err != nil {
		return err
	}
	s.states[occurrence] = state
	return nil
}

// checkChanges checks what a notification says that the occurrence has changed.
func checkChanges(n map[string]any, mayNot bool) error {
	info, byPackage := n["changedInfo"] != nil, n["modificationsTriggeredByVnfPkgChange"] != nil
	if ofPackage := text(n, "operation") == "CHANGE_VNFPKG"; ofPackage && info || !ofPackage && byPackage {
		return errors.New("it has the changed attributes under the name of another operation")
	}
	if (n["affectedVnfcs"] != nil || info || byPackage) && mayNot {
		return errors.New("it says too early or too much what has changed")
	}
	return nil
}

func text(of map[string]any, name string) string {
	value, _ := of[name].(string)
	return value
}
