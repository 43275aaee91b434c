package estimate

import (
	"math"
	"time"
)

const (
	// bucketGrowth is the width of a bucket of VPA's histograms, relative to the one before.
	bucketGrowth float64 = 1.05
	// bucketCount is the number of buckets that reach from 0.01 to 1,000 cores, and from 10 MB to 1 TB.
	bucketCount = 176
	// leastWeight is the weight below which a bucket counts as empty.
	leastWeight = 0.0001
	// maxHalfLives is the number of half-lives after which the reference time moves, so that weights do
	// not overflow.
	maxHalfLives = 100
)

// decayingHistogram is the histogram of VPA. Bucket n has the width firstBucket × 1.05ⁿ. A sample of
// time t has the weight 2^((t - reference) / halfLife), so samples lose half of their weight,
// relative to new ones, in each half-life.
//
// VPA's own code fixes the order of the floating-point operations here: another order can choose the
// bucket beside it.
type decayingHistogram struct {
	firstBucket float64
	halfLife    time.Duration
	weights     [bucketCount]float64
	total       float64
	reference   time.Time // a multiple of halfLife; zero until there is a sample
}

// bucketOf returns the bucket of value: floor(log(value/firstBucket × 0.05 + 1) / log(1.05)).
func (h *decayingHistogram) bucketOf(value float64) int {
	if value < h.firstBucket {
		return 0
	}
	return min(int(math.Log(value*(bucketGrowth-1)/h.firstBucket+1)/math.Log(bucketGrowth)), bucketCount-1)
}

// start returns the lower bound of a bucket: the sum of the widths of those before it.
func (h *decayingHistogram) start(bucket int) float64 {
	return h.firstBucket * (math.Pow(bucketGrowth, float64(bucket)) - 1) / (bucketGrowth - 1)
}

func (h *decayingHistogram) add(value, weight float64, at time.Time) {
	weight *= h.factor(at)
	h.weights[h.bucketOf(value)] += weight
	h.total += weight
}

// subtract removes a sample that was added with the same arguments.
func (h *decayingHistogram) subtract(value, weight float64, at time.Time) {
	weight *= h.factor(at)
	bucket := &h.weights[h.bucketOf(value)]
	for _, w := range []*float64{bucket, &h.total} {
		if *w -= weight; *w < leastWeight {
			*w = 0
		}
	}
}

// factor returns the factor of the weight of a sample. It may move the reference time.
func (h *decayingHistogram) factor(at time.Time) float64 {
	if at.After(h.reference.Add(maxHalfLives * h.halfLife)) {
		h.moveReference(at.Round(h.halfLife))
	}
	return math.Exp2(float64(at.Sub(h.reference)) / float64(h.halfLife))
}

// moveReference scales the weights to a later reference time. Buckets outside of the bounds keep their
// weight, as in VPA.
func (h *decayingHistogram) moveReference(to time.Time) {
	halfLives := int(math.Floor(float64(h.reference.Sub(to))/float64(h.halfLife) + 0.5))
	scale := math.Ldexp(1, halfLives)
	low, high := h.bounds()
	for i := low; i <= high; i++ {
		h.weights[i] *= scale
	}
	h.total *= scale
	h.reference = to
}

// bounds returns the first and the last bucket that are not empty. If all are empty, the first is
// above the last.
func (h *decayingHistogram) bounds() (low, high int) {
	for low < bucketCount-1 && h.weights[low] < leastWeight {
		low++
	}
	high = bucketCount - 1
	for high > 0 && h.weights[high] < leastWeight {
		high--
	}
	return low, high
}

// percentile returns the upper bound of the bucket that holds the share of the total weight; zero if
// all buckets are empty.
func (h *decayingHistogram) percentile(share float64) float64 {
	low, high := h.bounds()
	if h.weights[low] < leastWeight {
		return 0
	}
	sum, threshold := 0.0, share*h.total
	bucket := low
	for ; bucket < high; bucket++ {
		if sum += h.weights[bucket]; sum >= threshold {
			break
		}
	}
	return h.start(min(bucket+1, bucketCount-1)) // the last bucket has no upper bound
}
