{{- define "k8splugin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- /* The name of all objects: that of the release, followed by that of the chart unless it is part of it. */ -}}
{{- define "k8splugin.fullname" -}}
{{- $name := include "k8splugin.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "k8splugin.serviceName" -}}
{{- if .Values.onap.enabled }}{{ .Values.onap.serviceName }}{{ else }}{{ include "k8splugin.fullname" . }}{{ end -}}
{{- end -}}

{{- define "k8splugin.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "k8splugin.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "k8splugin.selector" -}}
app.kubernetes.io/name: {{ include "k8splugin.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "k8splugin.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "k8splugin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "k8splugin.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* Conditions: "true", or empty for false. */ -}}
{{- define "k8splugin.tls" -}}
{{- if or .Values.tls.existingSecret .Values.tls.certificate }}true{{ end -}}
{{- end -}}

{{- define "k8splugin.https" -}}
{{- if or (include "k8splugin.tls" .) .Values.istio.enabled }}true{{ end -}}
{{- end -}}

{{- define "k8splugin.clientCA" -}}
{{- if .Values.tls.existingSecret }}{{ .Values.tls.clientCAKey }}{{ else if .Values.tls.clientCA }}ca.crt{{ end -}}
{{- end -}}

{{- define "k8splugin.access" -}}
{{- if or .Values.access.existingSecret .Values.access.files }}true{{ end -}}
{{- end -}}

{{- define "k8splugin.embedded" -}}
{{- if eq .Values.store.kind "embedded" }}true{{ end -}}
{{- end -}}
