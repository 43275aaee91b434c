package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody limits how much of a request's body is read.
const maxBody = 1 << 20

// decode reads an API object in the encoding that the request declares.
func decode(r *http.Request, into runtime.Object) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	if _, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	return nil
}

// respond writes an API object in the encoding that the request accepts.
func respond(w http.ResponseWriter, r *http.Request, code int, o runtime.Object) {
	mime := runtime.ContentTypeJSON
	if strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		mime = runtime.ContentTypeProtobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mime)
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		refuse(w, r, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	w.Header().Set("Content-Type", mime)
	w.WriteHeader(code)
	version := kinds[0].GroupVersion()
	if version.Version == "" || version.Version == runtime.APIVersionInternal {
		version = schema.GroupVersion{Version: "v1"}
	}
	_ = scheme.Codecs.EncoderForVersion(info.Serializer, version).Encode(o, w) // an error means that the client has gone
}

// review answers yes: every token is valid, is the name of its user, and may do everything.
func review(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		var o authenticationv1.TokenReview
		if err := decode(r, &o); err != nil {
			refuse(w, r, http.StatusBadRequest, "BadRequest", err.Error())
			return
		}
		o.Status = authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: o.Spec.Audiences,
			User: authenticationv1.UserInfo{Username: o.Spec.Token, Groups: []string{"system:authenticated"}},
		}
		respond(w, r, http.StatusCreated, &o)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		var o authorizationv1.SubjectAccessReview
		if err := decode(r, &o); err != nil {
			refuse(w, r, http.StatusBadRequest, "BadRequest", err.Error())
			return
		}
		o.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
		respond(w, r, http.StatusCreated, &o)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var o authorizationv1.SelfSubjectAccessReview
		if err := decode(r, &o); err != nil {
			refuse(w, r, http.StatusBadRequest, "BadRequest", err.Error())
			return
		}
		o.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
		respond(w, r, http.StatusCreated, &o)
	default:
		refuse(w, r, http.StatusNotFound, "NotFound", "the simulated API server has no "+r.URL.Path)
	}
}

// drop accepts an object and answers that it was created, but does not store
// it.
func drop(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		refuse(w, r, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}
