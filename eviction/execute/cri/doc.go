// Package cri removes what a container runtime can do without: images nobody uses and
// containers that have ended.
package cri

import (
	_ "k8s.io/cri-api/pkg/apis/runtime/v1" // until it is used
)
