package decisionreport

import (
	"fmt"

	"github.com/weir-metrics/weir/autoscaler"
)

var classes = map[autoscaler.Class]string{
	autoscaler.Counted: "Counted", autoscaler.Unready: "Unready", autoscaler.Missing: "Missing",
	autoscaler.Ignored: "Ignored", autoscaler.Stranger: "Stranger",
}

var whys = map[autoscaler.Why]string{
	autoscaler.WhyReady:          "",
	autoscaler.WhyTerminating:    "it is being deleted",
	autoscaler.WhyFailed:         "its phase is Failed",
	autoscaler.WhyPending:        "its phase is Pending",
	autoscaler.WhyNoSample:       "no number",
	autoscaler.WhyNoCondition:    "it has no Ready condition, or no start time",
	autoscaler.WhyStarting:       "not ready in its CPU initialization period",
	autoscaler.WhyWindowTooEarly: "in its CPU initialization period, and the window began before it was ready",
	autoscaler.WhyNeverReady:     "not ready, and never was",
	autoscaler.WhyNotRunning:     "it is not Running",
	autoscaler.WhyNotReady:       "it is not Ready",
	autoscaler.WhyUnknown:        "the target has no such pod",
}

// why says why a pod is in its class.
func (t *teller) why(m *autoscaler.MetricDecision, p *autoscaler.PodCase) string {
	text := whys[p.Why]
	if pod := t.pods[p.Pod]; pod != nil && !pod.Started.IsZero() {
		switch p.Why {
		case autoscaler.WhyStarting, autoscaler.WhyWindowTooEarly:
			text += fmt.Sprintf(" (until %s)", clock(pod.Started.Add(t.settings().CPUInitialization), t.At))
		}
	}
	if p.Why == autoscaler.WhyNoSample && t.Verdict != nil {
		if v, ok := t.Verdict(m.Index, p.Pod); ok {
			text = v.Reason
			if v.Message != "" {
				text += ": " + v.Message
			}
		}
	}
	return text
}

// settings are those of the decision, or else the defaults.
func (t *teller) settings() autoscaler.Settings {
	if t.Input != nil && t.Input.Settings != nil {
		return *t.Input.Settings
	}
	return autoscaler.DefaultSettings()
}
