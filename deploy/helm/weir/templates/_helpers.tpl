{{/*
The objects are those of kustomize/, which is a link to weir's manifests. The templates read
them, and change what the values say. So the two ways to install weir cannot differ, and a
component is written once.
*/}}

{{- define "weir.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "weir.fullname" -}}
{{- $name := include "weir.name" . }}
{{- if .Values.fullnameOverride }}
{{- $name = .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}
{{- $name = .Release.Name }}
{{- else }}
{{- $name = printf "%s-%s" .Release.Name $name }}
{{- end }}
{{- $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "weir.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "weir.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create }}{{ include "weir.fullname" . }}
{{- else }}{{ fail "serviceAccount.create=false needs serviceAccount.name: the account default would give weir's rights to every pod of the namespace" }}
{{- end }}
{{- end }}

{{/*
inPlace: whether the release may have been one of metrics-server's chart. Its objects then keep
their names and selectors, so that the new pod takes over from the old one without a gap.
*/}}
{{- define "weir.inPlace" -}}
{{- if eq (include "weir.name" .) "metrics-server" }}true{{ end }}
{{- end }}

{{- define "weir.selector" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- if not (include "weir.inPlace" .) }}
app.kubernetes.io/component: server
{{- end }}
{{- end }}

{{- define "weir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* secret: the name of the Secret with the serving certificate. */}}
{{- define "weir.secret" -}}
{{- if and (eq .Values.tls.type "existingSecret") .Values.tls.existingSecret.name }}
{{- .Values.tls.existingSecret.name }}
{{- else }}
{{- include "weir.fullname" . }}{{ if not (include "weir.inPlace" .) }}-serving-cert{{ end }}
{{- end }}
{{- end }}

{{- define "weir.selfSigned" -}}
{{- if has .Values.tls.type (list "weir" "metrics-server") }}true{{ end }}
{{- end }}

{{/*
otherImage: whether image names no image of weir, and so has no effect. A tag or a digest without a
repository is one of metrics-server's, whose chart has a repository of its own. A repository is not weir's
if it ends in metrics-server. In a release of metrics-server it is weir's only if its name has the word weir:
mirrors of metrics-server have all kinds of names.
*/}}
{{- define "weir.otherImage" -}}
{{- $image := .Values.image }}
{{- if not $image.repository }}
{{- if or $image.tag $image.digest $image.pullPolicy }}true{{ end }}
{{- else if not $image.holdsWeir }}
{{- $name := regexReplaceAll "^[^/]*[.:][^/]*/" $image.repository "" }}{{/* without the registry */}}
{{- $named := regexMatch "(^|[^a-z0-9])weir([^a-z0-9]|$)" $name }}
{{- if or (hasSuffix "metrics-server" $image.repository) (and (include "weir.inPlace" .) (not $named)) }}true{{ end }}
{{- end }}
{{- end }}

{{/* image: the fields image and imagePullPolicy of a container. */}}
{{- define "weir.image" -}}
{{- $own := "weir.invalid/weir" }}
{{- $image := ternary (dict) .Values.image (eq (include "weir.otherImage" .) "true") }}
{{- $repository := $image.repository | default $own }}
{{- if $image.digest }}
image: {{ printf "%s@%s" $repository $image.digest | quote }}
{{- else }}
image: {{ printf "%s:%s" $repository ($image.tag | default (ternary "dev" .Chart.AppVersion (eq $repository $own))) | quote }}
{{- end }}
imagePullPolicy: {{ $image.pullPolicy | default (ternary "Never" "IfNotPresent" (eq $repository $own)) }}
{{- end }}

{{/*
components: the components of kustomize/ that the values ask for, in the order in which they are
applied.
*/}}
{{- define "weir.components" -}}
{{- $v := .Values }}
{{- $list := list }}
{{- if $v.agent.enabled }}
{{- $list = append $list "agent" }}
{{- if and (eq $v.agent.eviction "kill") (contains "--eviction-soft" (join " " $v.agent.args)) }}
{{- $list = append $list "agent-evict" }}
{{- end }}
{{- if ne $v.agent.eviction "observe" }}
{{- $list = append $list (printf "agent-%s" $v.agent.eviction) }}
{{- end }}
{{- if $v.agent.killAtOnce }}
{{- $list = append $list "agent-kill-at-once" }}
{{- end }}
{{- if $v.agent.oomEvents }}{{ $list = append $list "agent-oom-events" }}{{ end }}
{{- if $v.agent.conditions }}
{{- $list = append $list "agent-conditions" }}
{{- end }}
{{- if or (contains "--eviction-pressure=" (join " " $v.agent.args)) (has "--eviction-pressure" $v.agent.args) }}{{ $list = append $list "agent-pressure" }}{{ end }}
{{- if not $v.agent.hostPID }}{{ $list = append $list "agent-no-host-pid" }}{{ end }}
{{- end }}
{{- if $v.autoscaler.enabled }}{{ $list = append $list "autoscaler" }}{{ end }}
{{- if $v.events.enabled }}{{ $list = append $list "events" }}{{ end }}
{{- if $v.hpaEvents.enabled }}{{ $list = append $list "hpa-events" }}{{ end }}
{{- if $v.customMetrics.enabled }}{{ $list = append $list "custom-metrics" }}{{ end }}
{{- if $v.externalMetrics.enabled }}{{ $list = append $list "external-metrics-api" }}{{ end }}
{{- if and $v.externalMetrics.enabled $v.externalMetrics.rules }}{{ $list = append $list "external-metrics" }}{{ end }}
{{- if $v.adapters.enabled }}{{ $list = append $list "adapters" }}{{ end }}
{{- if $v.shareReads }}{{ $list = append $list "shared-reads" }}{{ end }}
{{- if not (include "weir.selfSigned" .) }}{{ $list = append $list "serving-cert" }}{{ end }}
{{- if gt (int $v.replicas) 1 }}{{ $list = append $list "ha" }}{{ end }}
{{- if $v.networkPolicy.enabled }}{{ $list = append $list "network-policy" }}{{ end }}
{{- toYaml (dict "list" $list) }}
{{- end }}

{{/* file: the text of a manifest, with the names of this release. Takes root and file. */}}
{{- define "weir.file" -}}
{{- $text := .root.Files.Get .file }}
{{- if not $text }}
{{- fail (printf "the chart lacks the file %s: if it comes from git, the links in its folder must be kept" .file) }}
{{- end }}
{{- $text | replace "weir-system" (include "weir.namespace" .root) | replace "weir-serving-cert" (include "weir.secret" .root) }}
{{- end }}

{{/* object: the only object of a manifest. Takes root and file. */}}
{{- define "weir.object" -}}
{{- $object := include "weir.file" . | fromYaml }}
{{- if hasKey $object "Error" }}{{ fail (printf "%s: %s" .file $object.Error) }}{{ end }}
{{- include "weir.labelled" (dict "root" .root "object" $object) }}
{{- end }}

{{/* labelled: an object with the labels of this release. Takes root and object. */}}
{{- define "weir.labelled" -}}
{{- $metadata := .object.metadata }}
{{- $_ := set $metadata "labels" (mergeOverwrite ($metadata.labels | default dict) (include "weir.labels" .root | fromYaml)) }}
{{- toYaml .object }}
{{- end }}

{{/*
manifests: the objects of a manifest, as documents. Takes root and file. Left out are: kinds that
have templates of their own, and rights if there shall be none.
*/}}
{{- define "weir.manifests" -}}
{{- $root := .root }}
{{- $file := .file }}
{{- $v := $root.Values }}
{{- range regexSplit "(?m)^---$" (include "weir.file" .) -1 }}
{{- $o := fromYaml . }}
{{- if hasKey $o "Error" }}{{ fail (printf "%s: %s" $file $o.Error) }}{{ end }}
{{- $rights := or (has $o.kind (list "Role" "ClusterRole" "RoleBinding" "ClusterRoleBinding")) (eq (dig "metadata" "name" "" $o) "weir-kubelet-reader") }}
{{- if and $o (or (not $rights) $v.rbac.create) }}
{{- range $o.subjects }}
{{- if eq .name "weir" }}{{ $_ := set . "name" (include "weir.serviceAccount" $root) }}{{ end }}
{{- end }}
{{- if eq $o.kind "APIService" }}
{{- include "weir.apiService" (dict "root" $root "object" $o) }}
{{- else if and (eq $o.kind "ServiceAccount") (eq $o.metadata.name "weir") }}
{{- include "weir.account" (dict "root" $root "object" $o) }}
{{- else if eq $o.kind "CustomResourceDefinition" }}
{{- if $v.autoscaler.keepCRD }}
{{- $_ := set $o.metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") ($o.metadata.annotations | default dict)) }}
{{- end }}
---
{{ include "weir.labelled" (dict "root" $root "object" $o) }}
{{- else if not (has $o.kind (list "DaemonSet" "PodDisruptionBudget" "NetworkPolicy")) }}
---
{{ include "weir.labelled" (dict "root" $root "object" $o) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* account: the ServiceAccount of the server. Takes root and object. */}}
{{- define "weir.account" }}
{{- $account := .root.Values.serviceAccount }}
{{- if $account.create }}
{{- $_ := set .object.metadata "name" (include "weir.serviceAccount" .root) }}
{{- with $account.annotations }}{{ $_ := set $.object.metadata "annotations" . }}{{ end }}
{{- with $account.secrets }}{{ $_ := set $.object "secrets" . }}{{ end }}
---
{{ include "weir.labelled" . }}
{{- end }}
{{- end }}

{{/* apiService: an APIService, which leads to the Service of this release. Takes root and object. */}}
{{- define "weir.apiService" }}
{{- $root := .root }}
{{- $v := $root.Values }}
{{- $object := .object }}
{{- if $v.apiService.create }}
{{- $annotations := dict }}
{{- $bundle := $v.apiService.caBundle | b64enc }}
{{- $injected := and (eq $v.tls.type "cert-manager") $v.tls.certManager.addInjectorAnnotations }}
{{- if $injected }}
{{- $bundle = "" }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" (include "weir.namespace" $root) (include "weir.secret" $root)) }}
{{- else if eq $v.tls.type "helm" }}
{{- $bundle = (include "weir.certificate" $root | fromYaml).crt }}
{{- else if and (eq $v.tls.type "existingSecret") $v.tls.existingSecret.lookup (not $bundle) }}
{{- with lookup "v1" "Secret" (include "weir.namespace" $root) (include "weir.secret" $root) }}
{{- $bundle = index .data "ca.crt" | default (index .data "tls.crt") }}
{{- end }}
{{- end }}
{{- with mergeOverwrite $annotations $v.apiService.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end }}
{{- $spec := unset $object.spec "insecureSkipTLSVerify" }}
{{- if $bundle }}
{{- $_ := set $spec "caBundle" $bundle }}
{{- else if and $v.apiService.insecureSkipTLSVerify (not $injected) }}
{{- $_ := set $spec "insecureSkipTLSVerify" true }}
{{- end }}
{{- $_ := set $spec.service "name" (include "weir.fullname" $root) }}
{{- $_ := set $spec.service "port" $v.service.port }}
---
{{ include "weir.labelled" . }}
{{- end }}
{{- end }}

{{/* dnsNames: the names in the serving certificate. */}}
{{- define "weir.dnsNames" -}}
{{- $service := printf "%s.%s" (include "weir.fullname" .) (include "weir.namespace" .) }}
- {{ $service }}
- {{ $service }}.svc
- {{ $service }}.svc.{{ .Values.tls.clusterDomain }}
{{- end }}

{{/*
certificate: the certificate of tls.type helm with its key, in base64: that of the Secret if there
is one, and two thirds of its time have not passed, or else a new one, which is the same for all
templates. The Secret has the time, in seconds since 1970, as an annotation.
*/}}
{{- define "weir.certificate" -}}
{{- $made := get .Values.tls "made" }}
{{- if not $made }}
{{- $secret := lookup "v1" "Secret" (include "weir.namespace" .) (include "weir.secret" .) }}
{{- $renewAt := dig "metadata" "annotations" "weir.dev/renew-at" "" ($secret | default dict) }}
{{- if and $secret .Values.tls.helm.lookup (gt (int64 $renewAt) (now | unixEpoch | int64)) }}
{{- $made = dict "crt" (index $secret.data "tls.crt") "key" (index $secret.data "tls.key") "renewAt" $renewAt }}
{{- else }}
{{- $days := int .Values.tls.helm.certDurationDays }}
{{- $new := genSelfSignedCert (include "weir.fullname" .) nil (include "weir.dnsNames" . | fromYamlArray) $days }}
{{- $made = dict "crt" (b64enc $new.Cert) "key" (b64enc $new.Key) "renewAt" (add (now | unixEpoch | int64) (mul $days 57600) | toString) }}
{{- end }}
{{- $_ := set .Values.tls "made" $made }}
{{- end }}
{{- toYaml $made }}
{{- end }}

{{/*
add: a value in an object, as by the operation "add" of a JSON patch: added to a list if the path
ends in "-". Takes object, path and value.
*/}}
{{- define "weir.add" }}
{{- $at := .object }}
{{- $path := splitList "/" (trimAll "/-" .path) }}
{{- range initial $path }}
{{- if kindIs "slice" $at }}{{ $at = index $at (int .) }}{{ else }}{{ $at = get $at . }}{{ end }}
{{- end }}
{{- if hasSuffix "/-" .path }}
{{- $_ := set $at (last $path) (append (get $at (last $path)) .value) }}
{{- else }}
{{- $_ := set $at (last $path) .value }}
{{- end }}
{{- end }}

{{/*
component: what a component changes in a Deployment or DaemonSet. It knows the changes that weir's
components make: values of fields and of lists, variables, volumes, the group of volumes and the affinity.
Takes root, name and object.
*/}}
{{- define "weir.component" }}
{{- $root := .root }}
{{- $dir := printf "kustomize/components/%s" .name }}
{{- $object := .object }}
{{- $pod := $object.spec.template.spec }}
{{- $container := first $pod.containers }}
{{- range (include "weir.file" (dict "root" $root "file" (printf "%s/kustomization.yaml" $dir)) | fromYaml).patches }}
{{- if not .path }}
{{- if eq .target.kind $object.kind }}
{{- range fromYamlArray .patch }}{{ include "weir.add" (dict "object" $object "path" .path "value" .value) }}{{ end }}
{{- end }}
{{- else if eq .path (printf "%s.yaml" (lower $object.kind)) }}
{{- $patch := (include "weir.file" (dict "root" $root "file" (printf "%s/%s" $dir .path)) | fromYaml).spec.template.spec }}
{{- with $patch.volumes }}{{ $_ := set $pod "volumes" (concat . $pod.volumes) }}{{ end }}
{{- with $patch.securityContext }}{{ $_ := mergeOverwrite $pod.securityContext . }}{{ end }}
{{- with $patch.affinity }}{{ $_ := set $pod "affinity" . }}{{ end }}
{{- range $patch.containers }}
{{- with .volumeMounts }}{{ $_ := set $container "volumeMounts" (concat . $container.volumeMounts) }}{{ end }}
{{- range .env }}{{ include "weir.variable" (dict "container" $container "name" .name "value" .value) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* variable: a variable of a container gets a value. Takes container, name and value. */}}
{{- define "weir.variable" }}
{{- $name := .name }}
{{- $value := .value }}
{{- range .container.env }}
{{- if eq .name $name }}{{ $_ := set . "value" $value }}{{ end }}
{{- end }}
{{- end }}

{{/*
args: defaultArgs and args, sorted out.
  given    the flags that go to weir, as written
  names    their names
  options  metrics-server's flags that are options of weir's --source
  insecure whether kubelets' certificates are not verified
  unused   metrics-server's flags that weir does not have
*/}}
{{- define "weir.args" -}}
{{- $kubelet := dict "kubelet-certificate-authority" "ca" "kubelet-client-certificate" "client-cert" "kubelet-client-key" "client-key"
  "kubelet-port" "port" "kubelet-preferred-address-types" "address-types" "kubelet-request-timeout" "timeout"
  "kubelet-use-node-status-port" "status-port" "node-selector" "node-selector" "l" "node-selector" }}
{{- $unknown := list "deprecated-kubelet-completely-insecure" "log-flush-frequency" "log-json-info-buffer-size" "log-json-split-stream"
  "log-text-info-buffer-size" "log-text-split-stream" "vmodule" "advertise-address" "cors-allowed-origins" "emulated-version"
  "emulation-forward-compatible" "external-hostname" "feature-gates" "goaway-chance" "livez-grace-period" "min-compatibility-version"
  "min-request-timeout" "runtime-config-emulation-forward-compatible" "shutdown-send-retry-after"
  "shutdown-watch-termination-grace-period" "storage-initialization-timeout" "strict-transport-security-directives" }}
{{- $list := list }}
{{- range concat .Values.defaultArgs .Values.args }}
{{- if or (hasPrefix "-" .) (not $list) }}
{{- $list = append $list . }}
{{- else }}
{{- $list = append (initial $list) (printf "%s=%s" (last $list) .) }}
{{- end }}
{{- end }}
{{- $out := dict "given" list "names" list "options" dict "insecure" "false" "unused" list }}
{{- range $list }}
{{- $name := regexReplaceAll "^--?|=.*" . "" }}
{{- $value := ternary (regexReplaceAll "^[^=]*=" . "") "true" (contains "=" .) }}
{{- if eq $name "kubelet-insecure-tls" }}
{{- $_ := set $out "insecure" $value }}
{{- else if hasKey $kubelet $name }}
{{- $_ := set $out.options (get $kubelet $name) $value }}
{{- else if has $name $unknown }}
{{- $_ := set $out "unused" (append $out.unused (printf "--%s" $name)) }}
{{- else }}
{{- $_ := set $out "given" (append $out.given .) }}
{{- $_ := set $out "names" (append $out.names $name) }}
{{- end }}
{{- end }}
{{- toYaml $out }}
{{- end }}
