// Package manifest reads the file of one HorizontalPodAutoscaler or Autoscaler, in the YAML or JSON
// that people write for kubectl. It reads strictly, sets the defaults of the API server, and its
// errors name the field.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// The kinds that can be read.
const (
	HorizontalPodAutoscaler = "HorizontalPodAutoscaler"
	Autoscaler              = v1alpha1.Kind
)

// MaxBytes is the largest size of a manifest. etcd has the same limit.
const MaxBytes = 1 << 20

// Manifest is an autoscaler from a file.
type Manifest struct {
	Kind            string // HorizontalPodAutoscaler or Autoscaler
	Namespace, Name string // Namespace may be empty
	// Spec has the defaults of the API server.
	Spec *autoscalingv2.HorizontalPodAutoscalerSpec
	// Status is the status in the file, in the form of `kubectl get -o yaml`.
	Status autoscalingv2.HorizontalPodAutoscalerStatus
}

// Read reads the one autoscaler in a file. Other objects are an error. Unknown fields are an error,
// too, because a misspelled behavior would have no effect.
func Read(file []byte) (*Manifest, error) {
	if len(file) > MaxBytes {
		return nil, fmt.Errorf("a manifest of %d bytes is longer than an API server accepts (%d)", len(file), MaxBytes)
	}
	doc, err := singleDocument(file)
	if err != nil {
		return nil, err
	}
	var matches metav1.TypeMeta
	if err := sigsyaml.Unmarshal(doc, &matches); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var m *Manifest
	switch matches.APIVersion + " " + matches.Kind {
	case autoscalingv2.SchemeGroupVersion.String() + " " + HorizontalPodAutoscaler:
		m, err = readHPA(doc)
	case v1alpha1.GroupVersion().String() + " " + Autoscaler:
		m, err = readAutoscaler(doc)
	default:
		return nil, wrongKindError(matches)
	}
	if err != nil {
		return nil, err
	}
	if m.Name == "" {
		return nil, errors.New("metadata.name: an autoscaler needs a name")
	}
	// The caller decides whether zero replicas are allowed.
	settings := autoscaler.DefaultSettings()
	settings.ScaleToZero = true
	if err := autoscaler.Validate(m.Spec, settings); err != nil {
		return nil, err
	}
	return m, nil
}

// singleDocument returns the only document in a file that is not empty.
func singleDocument(file []byte) ([]byte, error) {
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	var found []byte
	for {
		doc, err := docs.Read()
		switch {
		case errors.Is(err, io.EOF):
			if found == nil {
				return nil, errors.New("the manifest is empty")
			}
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		if err := checkExpandedSize(doc); err != nil {
			return nil, err
		}
		var content any
		if err := sigsyaml.Unmarshal(doc, &content); err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		if content == nil {
			continue // the document has only comments
		}
		if found != nil {
			return nil, errors.New("the manifest has several objects: it must have exactly one autoscaler")
		}
		found = bytes.Clone(doc)
	}
}

// decodeStrict decodes a document like an API server with strict validation. Its errors have the
// paths of fields that are unknown, repeated or of a wrong type.
func decodeStrict(doc []byte, into runtime.Object, add func(*runtime.Scheme) error) error {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return err
	}
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	if _, _, err := serializer.Decode(doc, nil, into); err != nil {
		return decodeError(doc, err)
	}
	return nil
}

func readHPA(doc []byte) (*Manifest, error) {
	var hpa autoscalingv2.HorizontalPodAutoscaler
	if err := decodeStrict(doc, &hpa, autoscalingv2.AddToScheme); err != nil {
		return nil, err
	}
	return FromHPA(&hpa), nil
}

func readAutoscaler(doc []byte) (*Manifest, error) {
	var a v1alpha1.Autoscaler
	if err := decodeStrict(doc, &a, v1alpha1.AddToScheme); err != nil {
		return nil, err
	}
	if m := a.Spec.Mode; m != "" && m != v1alpha1.Active && m != v1alpha1.DryRun {
		return nil, fmt.Errorf("spec.mode: %q is neither %s nor %s", m, v1alpha1.Active, v1alpha1.DryRun)
	}
	return FromAutoscaler(&a), nil
}

// FromHPA returns a HorizontalPodAutoscaler from an API server.
func FromHPA(hpa *autoscalingv2.HorizontalPodAutoscaler) *Manifest {
	m := &Manifest{Kind: HorizontalPodAutoscaler, Namespace: hpa.Namespace, Name: hpa.Name, Spec: hpa.Spec.DeepCopy(), Status: hpa.Status}
	autoscaler.Default(m.Spec)
	return m
}

// FromAutoscaler returns an Autoscaler from an API server.
func FromAutoscaler(a *v1alpha1.Autoscaler) *Manifest {
	m := &Manifest{Kind: Autoscaler, Namespace: a.Namespace, Name: a.Name, Spec: a.Spec.HorizontalPodAutoscalerSpec.DeepCopy(), Status: a.Status.HorizontalPodAutoscalerStatus}
	autoscaler.Default(m.Spec)
	return m
}

// wrongKindError returns an error that shows which kinds can be read.
func wrongKindError(matches metav1.TypeMeta) error {
	switch {
	case matches.Kind == HorizontalPodAutoscaler:
		return fmt.Errorf("apiVersion: %q is not autoscaling/v2, in which `kubectl get hpa NAME -o yaml` writes it", matches.APIVersion)
	case matches.Kind == Autoscaler:
		return fmt.Errorf("apiVersion: %q is not %s", matches.APIVersion, v1alpha1.GroupVersion())
	case matches.Kind == "":
		return errors.New("kind: missing; it must be HorizontalPodAutoscaler or Autoscaler")
	}
	return fmt.Errorf("kind: %q is neither a HorizontalPodAutoscaler nor an Autoscaler", matches.Kind)
}
