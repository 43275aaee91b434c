package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of the API.
const (
	Group    = "autoscaling.weir.dev"
	Version  = "v1alpha1"
	Kind     = "Autoscaler"
	Resource = "autoscalers"
)

// GroupVersion returns the API's group and version.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme registers the types in s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Autoscaler{}, &AutoscalerList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
