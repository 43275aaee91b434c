package reach

import (
	"context"

	"github.com/weir-metrics/weir/api/resize"
)

// Recommend asks which requests could be smaller.
func (w *Weir) Recommend(ctx context.Context, r resize.Request) (*resize.List, error) {
	list, err := resize.NewClient(w.client).Recommend(ctx, r)
	return list, w.advised(err)
}
