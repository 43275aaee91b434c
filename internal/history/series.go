package history

import (
	"context"
	"net/url"
	"time"
)

// Series returns the labels of the series that a selector matches and that have a sample between two
// times.
func (c *Client) Series(ctx context.Context, selector string, from, to time.Time) (all []map[string]string, err error) {
	status, body, err := c.post(ctx, "series", url.Values{"match[]": {selector}, "start": {seconds(from)}, "end": {seconds(to)}})
	if err != nil {
		return nil, err
	}
	_, err = envelope(status, body, &all)
	return all, err
}
