package resizeapi

import (
	"context"

	"github.com/weir-metrics/weir/api/weirdev"
)

// Client reads the API of one weir.
type Client struct{ Weir *weirdev.Client }

// Recommend returns recommendations. If the server answers with an error, the error is a
// *weirdev.Problem.
func (c *Client) Recommend(ctx context.Context, r Request) (*RecommendationList, error) {
	return weirdev.Get[RecommendationList](ctx, c.Weir, r.String(), r.path(), r.query, ListKind)
}
