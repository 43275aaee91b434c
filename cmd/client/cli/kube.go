package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Kube reads and changes objects of an API server, as JSON. It has only what the commands need:
// client-go's clientset has the types and methods of every API, which are most of a program's size.
type Kube struct{ rest *rest.RESTClient }

// NewKube returns a client of the API server of config. Its errors are those of Kubernetes.
func NewKube(config *rest.Config) (*Kube, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // the Status of an error
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = "", "" // JSON
	// No limit: client-go's five requests a second are for controllers, and a command may ask about each node.
	c.QPS = -1
	c.UserAgent = cmp.Or(c.UserAgent, rest.DefaultKubernetesUserAgent())
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make API client: %w", err)
	}
	return &Kube{client}, nil
}

// Get reads what is at a path into an object.
func (k *Kube) Get(ctx context.Context, path string, into any) error {
	return answer(ctx, k.rest.Get().AbsPath(path), into)
}

// Create sends an object to a path, and reads the answer into the object.
func (k *Kube) Create(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	return answer(ctx, k.rest.Post().AbsPath(path).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body), object)
}

// GetPod reads a pod.
func (k *Kube) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	var pod corev1.Pod
	return &pod, answer(ctx, k.rest.Get().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(name), &pod)
}

// List reads a list at a path. Of the options, it knows the selector of labels and pages.
func (k *Kube) List(ctx context.Context, path string, o metav1.ListOptions, into any) error {
	r := k.rest.Get().AbsPath(path)
	if o.LabelSelector != "" {
		r.Param("labelSelector", o.LabelSelector)
	}
	if o.Limit > 0 {
		r.Param("limit", fmt.Sprint(o.Limit))
	}
	if o.Continue != "" {
		r.Param("continue", o.Continue)
	}
	return answer(ctx, r, into)
}

// ResizePod sends a strategic merge patch of a pod to its subresource resize.
func (k *Kube) ResizePod(ctx context.Context, namespace, name string, patch []byte, o metav1.PatchOptions) (*corev1.Pod, error) {
	var pod corev1.Pod
	return &pod, k.Patch(ctx, "/api/v1/namespaces/"+namespace+"/pods/"+name+"/resize", patch, o, &pod)
}

// Patch sends a strategic merge patch to a path, and reads the answer into an object.
func (k *Kube) Patch(ctx context.Context, path string, patch []byte, o metav1.PatchOptions, into any) error {
	r := k.rest.Patch(types.StrategicMergePatchType).AbsPath(path).Param("fieldManager", o.FieldManager).Body(patch)
	for _, all := range o.DryRun {
		r.Param("dryRun", all)
	}
	return answer(ctx, r, into)
}

// answer sends a request, and reads the answer into an object.
func answer(ctx context.Context, r *rest.Request, into any) error {
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // with the words of the server, which Raw does not have
		return err
	}
	body, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("decode the API server's answer: %w", err)
	}
	return nil
}
