package parity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	feature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	coreqos "k8s.io/kubernetes/pkg/apis/core/helper/qos"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"

	"github.com/weir-metrics/weir/resize"
)

// somePod returns a pod with requests and limits that are absent, zero or one
// of a few values, so that every QoS class occurs.
func somePod(r *rand.Rand) *corev1.Pod {
	some := func(quantities ...string) (resource.Quantity, bool) {
		i := r.IntN(len(quantities) + 1)
		if i == len(quantities) {
			return resource.Quantity{}, false
		}
		return resource.MustParse(quantities[i]), true
	}
	list := func() corev1.ResourceList {
		list := corev1.ResourceList{}
		if q, ok := some("0", "100m", "0.1", "1"); ok {
			list[corev1.ResourceCPU] = q
		}
		if q, ok := some("0", "64Mi", "67108864", "1Gi"); ok {
			list[corev1.ResourceMemory] = q
		}
		if q, ok := some("1Gi"); ok {
			list[corev1.ResourceEphemeralStorage] = q
		}
		return list
	}
	requirements := func() corev1.ResourceRequirements {
		rr := corev1.ResourceRequirements{Requests: list(), Limits: list()}
		if r.IntN(2) == 0 {
			rr.Requests = rr.Limits
		}
		return rr
	}
	pod := &corev1.Pod{}
	for range 1 + r.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: requirements()})
	}
	for range r.IntN(2) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Resources: requirements()})
	}
	if r.IntN(4) == 0 {
		own := requirements()
		pod.Spec.Resources = &own
	}
	return pod
}

// TestQoSClassIsKubernetes checks that weir and the API server compute the same
// QoS class.
func TestQoSClassIsKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[corev1.PodQOSClass]int{}
	for range 100_000 {
		pod := somePod(r)
		want := qos.ComputePodQOS(pod)
		seen[want]++
		if got := resize.ClassOf(resize.FromPod(pod)); string(got) != string(want) {
			t.Fatalf("got %s, want %s, of %+v", got, want, pod.Spec)
		}
	}
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		if seen[class] < 1000 {
			t.Errorf("only %d pods were %s: the random input is one-sided", seen[class], class)
		}
	}
}

// inServer makes a pod one that the API server could have: running, with
// defaults, and valid except perhaps for its resources.
func inServer(t *testing.T, pod *corev1.Pod) *core.Pod {
	t.Helper()
	pod.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "1", ResourceVersion: "1", Annotations: pod.Annotations}
	pod.Spec.NodeName = "n1"
	pod.Status.Phase = corev1.PodRunning
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			c.Image, c.TerminationMessagePolicy = "i", corev1.TerminationMessageReadFile
			if c.Name == "" {
				c.Name = fmt.Sprintf("c%d-%d", len(list), i)
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Name = fmt.Sprintf("init-%d", i)
	}
	corev1defaults.SetObjectDefaults_Pod(pod)
	var to core.Pod
	if err := corev1defaults.Convert_v1_Pod_To_core_Pod(pod, &to, nil); err != nil {
		t.Fatal(err)
	}
	podutil.DefaultPodLevelResources(&to)
	if to.Status.QOSClass == "" {
		to.Status.QOSClass = coreqos.ComputePodQOS(&to)
	}
	return &to
}

// TestResizesAreRefusedAsKubernetesRefusesThem checks that Check rejects a
// resize exactly if Kubernetes' validation rejects it.
func TestResizesAreRefusedAsKubernetesRefusesThem(t *testing.T) {
	for _, gate := range []featuregate.Feature{features.PodLevelResources, features.PodLevelResourcesFixDefaulting, features.InPlacePodLevelResourcesVerticalScaling} {
		featuregatetesting.SetFeatureGateDuringTest(t, feature.DefaultFeatureGate, gate, true)
	}
	r := rand.New(rand.NewPCG(3, 4))
	tried, refused, podLevel, podLevelInPlace, initInPlace := 0, 0, 0, 0, 0
	for tried < 25_000 {
		pod := somePod(r)
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			if r.IntN(2) == 0 {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			for _, name := range resize.Resources() {
				if r.IntN(8) == 0 {
					c.ResizePolicy = append(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: corev1.ResourceName(name), RestartPolicy: corev1.RestartContainer})
				}
			}
		}
		options := validation.PodValidationOptions{
			PodLevelResourcesEnabled: true, InPlacePodLevelResourcesVerticalScalingEnabled: r.IntN(8) > 0,
			AllowExistingRestartContainerForNonSidecarInitContainer: true, // of a pod that is older than that rule
		}
		if options.InPlacePodLevelResourcesVerticalScalingEnabled {
			pod.Status.Resources = &corev1.ResourceRequirements{} // the kubelet reports them
		}
		switch r.IntN(10) {
		case 0:
			pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		case 1:
			pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		}
		before := inServer(t, pod)
		if errs := validation.ValidatePodCreate(before, options); len(errs) > 0 {
			continue // for example a request above its limit
		}
		tried++
		if err := corev1defaults.Convert_core_Pod_To_v1_Pod(before.DeepCopy(), pod, nil); err != nil {
			t.Fatal(err)
		}
		to := pod.DeepCopy()
		var changes []resize.ResourceChange
		change := func(container string, of *corev1.ResourceRequirements) {
			for _, name := range resize.Resources() {
				change := resize.ResourceChange{Container: container, Resource: name}
				set := func(list corev1.ResourceList, amount *resize.Amount) {
					if list != nil && r.IntN(2) == 0 {
						q := *resize.Quantity(name, []int64{0, 50, 100, 1000}[r.IntN(4)])
						list[corev1.ResourceName(name)] = q
						*amount = resize.Of(q.Value())
						if name == resize.CPU {
							*amount = resize.Of(q.MilliValue())
						}
					}
				}
				// Here, requests and limits may share a map. In an API server they do not.
				*of = *of.DeepCopy()
				set(of.Requests, &change.Request)
				set(of.Limits, &change.Limit)
				if change.Request.Set || change.Limit.Set {
					changes = append(changes, change)
				}
			}
		}
		for _, list := range [][]corev1.Container{to.Spec.InitContainers, to.Spec.Containers} {
			for i := range list {
				change(list[i].Name, &list[i].Resources)
			}
		}
		if own := to.Spec.Resources; own != nil && len(own.Requests)+len(own.Limits) > 0 {
			podLevel++
			change("", own)
		}
		errs := validation.ValidatePodResize(inServer(t, to), before, options)
		refusals, err := resize.Check(resize.FromPod(pod), changes)
		if err != nil {
			t.Fatal(err)
		}
		// Kubernetes makes changes that restart a container.
		refusals = slices.DeleteFunc(refusals, func(r resize.Refusal) bool { return r.Reason == resize.Restarts })
		if len(changes) == 0 {
			continue
		}
		ofInit := slices.ContainsFunc(changes, func(c resize.ResourceChange) bool { return strings.HasPrefix(c.Container, "init-") })
		switch {
		case len(refusals) > 0:
			refused++
		case to.Spec.Resources != nil:
			podLevelInPlace++
		case ofInit:
			initInPlace++
		}
		if (len(errs) > 0) != (len(refusals) > 0) {
			t.Fatalf("Kubernetes says %v, weir %v, of %+v in %+v, %+v, %+v", errs, refusals, changes, pod.Spec.InitContainers, pod.Spec.Containers, pod.Spec.Resources)
		}
	}
	if refused < tried/10 || refused > tried*9/10 {
		t.Errorf("%d of %d were refused: the random input is one-sided", refused, tried)
	}
	if podLevel < 500 || podLevelInPlace < 50 {
		t.Errorf("%d of %d pods with pod-level resources were resized: the random input is one-sided", podLevelInPlace, podLevel)
	}
	if initInPlace < 500 {
		t.Errorf("init containers of %d pods were resized: the random input is one-sided", initInPlace)
	}
}
