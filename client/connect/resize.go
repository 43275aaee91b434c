package connect

import (
	"context"

	"github.com/weir-metrics/weir/api/resizeapi"
)

// Recommend asks which requests could be smaller.
func (w *Weir) Recommend(ctx context.Context, r resizeapi.Request) (*resizeapi.RecommendationList, error) {
	list, err := resizeapi.NewClient(w.client).Recommend(ctx, r)
	return list, w.advised(err)
}
