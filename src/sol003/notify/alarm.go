package notify

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// alarmed is an AlarmNotification.
type alarmed struct {
	common

	Alarm wire.VNFAlarm `json:"alarm"`
}

// cleared is an AlarmClearedNotification.
type cleared struct {
	common

	Alarm string    `json:"alarmId"`
	At    time.Time `json:"alarmClearedTime"`
}
