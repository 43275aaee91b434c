package adapters

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/adapters/externalscaler"
	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/humanize"
)

// maxHeaders is the most bytes of headers and trailers of an external scaler's answer. Its error is there.
const maxHeaders = 64 << 10

// reconnect is how soon a scaler that was away is tried again. The default would reach two minutes.
var reconnect = backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second}

// scalerClient returns the gRPC client of an external scaler. Certificates that are missing are an error of
// this adapter only, until they are there.
func (c *client) scalerClient() (externalscaler.ExternalScalerClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.scaler == nil {
		trust := insecure.NewCredentials()
		if c.CAFile != "" {
			t, err := config.NewTLSConfig(&config.TLSConfig{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile})
			if err != nil {
				return nil, metricsgroup.Unavailable("adapter %s cannot be asked: %v", c.Name, err)
			}
			trust = credentials.NewTLS(t)
		}
		connection, err := grpc.NewClient("dns:///"+c.Scaler, grpc.WithTransportCredentials(trust), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)), grpc.WithMaxHeaderListSize(maxHeaders),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: c.Timeout}))
		if err != nil {
			return nil, metricsgroup.Unavailable("adapter %s cannot be asked: %v", c.Name, err)
		}
		c.mu.scaler = connection
	}
	return externalscaler.NewExternalScalerClient(c.mu.scaler), nil
}

// scaledObject describes to the scaler who asks.
func (c *client) scaledObject(namespace string) *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{Name: c.ScaledObject, Namespace: namespace, ScalerMetadata: c.Metadata}
}

// scalerMetrics returns the metrics that the scaler has. It is asked for the first of the entry's namespaces.
func (c *client) scalerMetrics(ctx context.Context) (all []provider.ExternalMetricInfo, err error) {
	namespace := ""
	if len(c.Namespaces) > 0 {
		namespace = c.Namespaces[0]
	}
	err = c.bounded(ctx, func(ctx context.Context) error {
		scaler, err := c.scalerClient()
		if err != nil {
			return err
		}
		answer, err := scaler.GetMetricSpec(ctx, c.scaledObject(namespace))
		switch specs := answer.GetMetricSpecs(); {
		case err != nil:
			return c.scalerFailure("GetMetricSpec", err)
		case len(specs) > maxItems:
			return c.unusable("it lists %d metrics, and at most %d are read", len(specs), maxItems)
		}
		for _, spec := range answer.GetMetricSpecs() {
			if name := spec.GetMetricName(); isMetricName(name) && !strings.Contains(name, "/") && takes(c.External, name) {
				all = append(all, provider.ExternalMetricInfo{Metric: name})
			}
		}
		return nil
	})
	return metricsgroup.WithoutRepeated(all), err
}

// scalerValues returns the values of a metric of the scaler.
func (c *client) scalerValues(ctx context.Context, namespace, metric string, selector labels.Selector) (*external_metrics.ExternalMetricValueList, error) {
	if selector != nil {
		requirements, _ := selector.Requirements()
		for _, r := range requirements {
			if r.Key() != c.SelectorLabel {
				return nil, metricsgroup.BadRequest("the values of adapter %s, an external scaler, have no label %s: leave the selector out", c.Name, r.Key())
			}
		}
	}
	var list *external_metrics.ExternalMetricValueList
	err := c.bounded(ctx, func(ctx context.Context) error {
		scaler, err := c.scalerClient()
		if err != nil {
			return err
		}
		answer, err := scaler.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: c.scaledObject(namespace), MetricName: metric})
		if err != nil {
			return c.scalerFailure("GetMetrics", err)
		}
		if list, err = c.valuesIn(answer, metric); err != nil || !c.IsActive {
			return err
		}
		active, err := scaler.IsActive(ctx, c.scaledObject(namespace))
		if err != nil {
			return c.scalerFailure("IsActive", err)
		}
		activate(list, active.GetResult())
		return nil
	})
	return list, err
}

// activate makes the sum of values 0 if the scaler is not active, and more than 0 if it is. An autoscaler
// that may scale to zero then does so when the scaler is not active: a value of one thousandth is one replica.
func activate(list *external_metrics.ExternalMetricValueList, active bool) {
	var sum resource.Quantity
	for i := range list.Items {
		if !active {
			list.Items[i].Value = *resource.NewMilliQuantity(0, resource.DecimalSI)
		}
		sum.Add(list.Items[i].Value)
	}
	if active && sum.Sign() <= 0 {
		list.Items = list.Items[:1]
		list.Items[0].Value = *resource.NewMilliQuantity(1, resource.DecimalSI)
	}
}

// valuesIn converts the values of a metric in an answer.
func (c *client) valuesIn(answer *externalscaler.GetMetricsResponse, metric string) (*external_metrics.ExternalMetricValueList, error) {
	values := answer.GetMetricValues()
	switch {
	case len(values) == 0:
		return nil, metricsgroup.NotFound("adapter %s: it has no value of %s", c.Name, metric)
	case len(values) > maxItems:
		return nil, c.unusable("it answered with %d values, and at most %d are taken", len(values), maxItems)
	}
	list, now := &external_metrics.ExternalMetricValueList{}, metav1.Now()
	for _, v := range values {
		if name := v.GetMetricName(); name != metric {
			return nil, c.unusable("it was asked for %s and answered with a value of %q", metric, humanize.Excerpt(name, maxMessage))
		}
		number := v.GetMetricValueFloat()
		if number == 0 { // an older scaler sets only the other one
			number = float64(v.GetMetricValue())
		}
		milli := math.RoundToEven(number * 1000)
		if !(math.Abs(milli) < 1<<63) {
			return nil, c.unusable("it answered with %v, which is not a number that an autoscaler can use", number)
		}
		list.Items = append(list.Items, external_metrics.ExternalMetricValue{
			MetricName: metric, Timestamp: now, Value: *resource.NewMilliQuantity(int64(milli), resource.DecimalSI),
		})
	}
	return list, nil
}

// scalerFailure returns the error for a call that failed.
func (c *client) scalerFailure(method string, err error) error {
	s := status.Convert(err)
	text := humanize.Excerpt(humanize.Printable(s.Message()), maxMessage)
	switch s.Code() {
	case codes.DeadlineExceeded:
		return metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "adapter %s did not answer within %v", c.Name, c.Timeout)
	case codes.Unavailable:
		return metricsgroup.Unavailable("adapter %s cannot be reached: %s", c.Name, text)
	case codes.NotFound:
		return metricsgroup.NotFound("adapter %s: %s", c.Name, text)
	case codes.Unimplemented:
		return c.unusable("it has no method %s: is it an external scaler of KEDA's protocol? %s", method, text)
	}
	return c.unusable("%s failed with %v: %s", method, s.Code(), text)
}

// checkScaler returns what is wrong with the entry of an external scaler; empty for nothing.
func (a *Adapter) checkScaler() string {
	host, port, ok := strings.Cut(a.Scaler, ":")
	if strings.HasPrefix(a.Scaler, "[") {
		host, port, ok = strings.Cut(a.Scaler, "]:")
	}
	switch {
	case a.URL != "":
		return "it has url and scaler: leave one of them out"
	case !ok || host == "" || port == "" || strings.Trim(port, "0123456789") != "" || strings.ContainsAny(host, "/@% "):
		return fmt.Sprintf("scaler %q is not the address of an external scaler: write HOST:PORT", humanize.URL(a.Scaler))
	case a.BearerTokenFile != "":
		return "external scalers take no token: name a client certificate in certFile and keyFile instead of bearerTokenFile"
	case len(a.Custom) > 0:
		return "external scalers have external metrics only: leave custom out"
	case a.CertFile != "" && a.CAFile == "":
		return "certFile is for TLS, which caFile turns on: name the certificates to trust there"
	}
	return ""
}
