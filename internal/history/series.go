package history

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// Series returns the labels of the series that a selector matches and that have a sample between two
// times.
func (c *Client) Series(ctx context.Context, selector string, from, to time.Time) ([]map[string]string, error) {
	status, body, err := c.post(ctx, "series", url.Values{"match[]": {selector}, "start": {seconds(from)}, "end": {seconds(to)}})
	if err != nil {
		return nil, err
	}
	a, err := envelope(status, body)
	if err != nil {
		return nil, err
	}
	var all []map[string]string
	if err := json.Unmarshal(a.Data, &all); err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w", err)
	}
	return all, nil
}
