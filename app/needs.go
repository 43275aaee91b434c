package app

import (
	"net/http"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/model"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
)

// What one must be allowed for weir's own paths: what metrics.k8s.io asks for the
// same numbers. A request that cannot be read needs everything; its handler refuses
// it for whoever may ask at all.

// everything is what one must be allowed to read all there is.
func everything() []server.Review { return []server.Review{server.ListPods(""), server.ListNodes()} }

// usageNeeds is what one must be allowed for a list of the usage API.
func usageNeeds(r *http.Request) []server.Review {
	request, err := usage.ParseRequest(r)
	switch {
	case err != nil:
		return everything()
	case request.Resource == usage.Nodes:
		return []server.Review{server.ListNodes()}
	case request.Everywhere:
		return everything()
	}
	return []server.Review{server.ListPods(request.Query.Namespace)}
}

// explainNeeds is what one must be allowed for an explanation or a report.
func explainNeeds(r *http.Request) []server.Review {
	request, err := explainapi.ParseRequest(r)
	switch {
	case err != nil, request.Missing && request.Namespace == "":
		return everything()
	case request.Missing:
		return []server.Review{server.ListPods(string(request.Namespace))}
	case request.Node != "":
		return []server.Review{server.GetNode(string(request.Node))}
	}
	return []server.Review{server.GetPod(string(request.Namespace), string(request.Pod))}
}

// nodeNeeds is what one must be allowed for what the agent on a node knows: evictions
// name every pod of it.
func nodeNeeds(r *http.Request) []server.Review {
	request, err := nodeapi.ParseRequest(r)
	if err != nil {
		return everything()
	}
	return []server.Review{nodeReview(request.Node, request.Subresource)}
}

// nodeReview is the right to read a subresource of a node in weir's own API.
func nodeReview(name, subresource string) server.Review {
	return server.Review{Verb: "get", Group: weirdev.Group, Resource: "nodes", Subresource: subresource, Name: name}
}

// modelNeeds is what one must be allowed for a path of Heapster's model.
func modelNeeds(r *http.Request) []server.Review {
	shown := model.Shows(r)
	switch {
	case shown.All:
		return everything()
	case shown.Nodes:
		return []server.Review{server.ListNodes()}
	case shown.Namespace != "":
		return []server.Review{server.ListPods(string(shown.Namespace))}
	}
	return nil
}
