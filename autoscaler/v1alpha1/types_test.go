package v1alpha1

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/test/cmptest"
)

// TestDeepCopy checks that a copy is equal and shares no memory, for all fields.
func TestDeepCopy(t *testing.T) {
	a := &Autoscaler{}
	fill(reflect.ValueOf(a).Elem())
	c := a.DeepCopyObject().(*Autoscaler)
	if !reflect.DeepEqual(a, c) {
		t.Fatalf("the copy differs:\n%s", cmp.Diff(a, c))
	}
	before, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	scribble(reflect.ValueOf(c))
	if after, _ := json.Marshal(a); string(after) != string(before) {
		t.Fatalf("writing to the copy changed the original:\n%s", cmp.Diff(string(before), string(after)))
	}
	var none *Autoscaler
	if got := none.DeepCopyObject(); got != nil {
		t.Errorf("a copy of nothing: got %v", got)
	}
	list := &AutoscalerList{Items: []Autoscaler{{Spec: AutoscalerSpec{Mode: DryRun}}}}
	if got := list.DeepCopyObject(); !reflect.DeepEqual(got, runtime.Object(list)) {
		t.Errorf("got %v, want %v", got, list)
	}
}

// fill sets every field of v to a value.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("250m")))
		return
	case metav1.FieldsV1:
		var f metav1.FieldsV1
		f.SetRawBytes([]byte(`{}`))
		v.Set(reflect.ValueOf(f))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(1e9, 0)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	}
}

// scribble changes every number and text that can be reached from v.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				scribble(v.Field(i))
			}
		}
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.String:
		v.SetString(v.String() + "!")
	}
}

// TestDefaults checks that absent fields get the defaults of autoscaling/v2.
func TestDefaults(t *testing.T) {
	f := func(given, want string) {
		t.Helper()
		var a, w Autoscaler
		if err := yaml.UnmarshalStrict([]byte(given), &a.Spec); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(want), &w.Spec); err != nil {
			t.Fatal(err)
		}
		SetDefaults(&a)
		cmptest.Equal(t, given, w.Spec, a.Spec, cmp.Comparer(func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 }))
	}
	const target = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\nmaxReplicas: 9\n"
	const cpu = "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]\n"
	f(target, target+cpu+"mode: Active\nminReplicas: 1\n")
	f(target+"mode: DryRun\nminReplicas: 3\n"+"behavior: {scaleDown: {stabilizationWindowSeconds: 60, tolerance: 0.05}}\n", target+cpu+`
mode: DryRun
minReplicas: 3
behavior:
  scaleUp:
    stabilizationWindowSeconds: 0
    selectPolicy: Max
    policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]
  scaleDown:
    stabilizationWindowSeconds: 60
    tolerance: 0.05
    selectPolicy: Max
    policies: [{type: Percent, value: 100, periodSeconds: 15}]
`)
}

// TestSpecIsInline checks that the specification of a HorizontalPodAutoscaler is valid in an
// Autoscaler.
func TestSpecIsInline(t *testing.T) {
	given := AutoscalerSpec{HorizontalPodAutoscalerSpec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3}, Mode: DryRun}
	got, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":3,"mode":"DryRun"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
