{{- define "vault.fullname" -}}
{{ .Release.Name }}-{{ .Chart.Name }}
{{- end -}}
