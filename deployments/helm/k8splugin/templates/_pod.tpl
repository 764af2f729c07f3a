{{- /* The pod of both workloads. */ -}}
{{- define "k8splugin.pod" -}}
metadata:
  labels:
    {{- merge (include "k8splugin.selector" . | fromYaml) .Values.podLabels | toYaml | nindent 4 }}
  annotations:
    checksum/settings: {{ list (include "k8splugin.settings" .) (default "" .Values.readinessRules) | toYaml | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "k8splugin.serviceAccountName" . | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false # variables of other Services could look like settings
  terminationGracePeriodSeconds: {{ add .Values.preStopSeconds .Values.drainSeconds 10 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- with .Values.user }}
    runAsUser: {{ int64 . }}
    runAsGroup: {{ int64 . }}
    fsGroup: {{ int64 . }}
    {{- end }}
    # Otherwise each start would make a key on the volume writable for the group,
    # and the service rejects a key that others can change.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
  - name: k8splugin
    {{- include "k8splugin.container" . | nindent 4 }}
  {{- with .Values.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  volumes:
  {{- include "k8splugin.volumes" . | nindent 2 }}
  {{- include "k8splugin.placement" . | nindent 2 }}
{{- end -}}

{{- define "k8splugin.container" -}}
{{- $probe := dict "port" "api" "scheme" (ternary "HTTPS" "HTTP" (eq (include "k8splugin.https" .) "true")) -}}
image: {{ include "k8splugin.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: {{- concat (list "serve" "--config" "/etc/k8splugin/config/config.yaml") .Values.extraArgs | toYaml | nindent 0 }}
{{- include "k8splugin.environment" . }}
ports:
- {name: api, containerPort: 9015}
startupProbe: # after a crash, the embedded store replays its log first
  httpGet: {{- merge (dict "path" "/healthz") $probe | toYaml | nindent 4 }}
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: {{- merge (dict "path" "/healthz") $probe | toYaml | nindent 4 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe: # its checks may take 3 seconds each
  httpGet: {{- merge (dict "path" "/readyz") $probe | toYaml | nindent 4 }}
  periodSeconds: 10
  timeoutSeconds: 8
  failureThreshold: 2
{{- with .Values.preStopSeconds }}
lifecycle:
  preStop: {sleep: {seconds: {{ . }}}}
{{- end }}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
volumeMounts:
{{- include "k8splugin.mounts" . }}
{{- end -}}

{{- define "k8splugin.environment" -}}
{{- if or (not (include "k8splugin.embedded" .)) .Values.audit.file .Values.extraEnv }}
env:
{{- if not (include "k8splugin.embedded" .) }}
- name: K8SPLUGIN_STORE
  valueFrom:
    secretKeyRef:
      name: {{ default (printf "%s-store" (include "k8splugin.fullname" .)) .Values.store.existingSecret | quote }}
      key: {{ .Values.store.secretKey | quote }}
{{- end }}
{{- if .Values.audit.file }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: K8SPLUGIN_AUDIT_FILE # one file for each replica, because a file has one writer
  value: /var/log/k8splugin/$(POD_NAME).log
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "k8splugin.mounts" }}
- {name: config, mountPath: /etc/k8splugin/config, readOnly: true}
{{- if not .Values.keys.generate }}
- {name: keys, mountPath: /etc/k8splugin/keys, readOnly: true}
{{- end }}
{{- if include "k8splugin.access" . }}
- {name: access, mountPath: /etc/k8splugin/access, readOnly: true}
{{- end }}
{{- if include "k8splugin.tls" . }}
- {name: tls, mountPath: /etc/k8splugin/tls, readOnly: true}
{{- end }}
{{- if .Values.istio.enabled }}
- {name: istio-token, mountPath: /var/run/secrets/tokens, readOnly: true}
- {name: istio-root, mountPath: /var/run/secrets/istio, readOnly: true}
{{- end }}
{{- if .Values.store.tlsSecret }}
- {name: store, mountPath: /etc/k8splugin/store, readOnly: true}
{{- end }}
{{- if include "k8splugin.embedded" . }}
- {name: data, mountPath: /var/lib/k8splugin}
{{- end }}
{{- if .Values.audit.file }}
- {name: audit, mountPath: /var/log/k8splugin}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Only the owner and the group can read the Secrets, because the service rejects keys that others can read. Whole folders are mounted, so that the pod receives changes. */ -}}
{{- define "k8splugin.volumes" -}}
{{- $name := include "k8splugin.fullname" . -}}
- name: config
  configMap: {name: {{ $name }}}
{{- if not .Values.keys.generate }}
- name: keys
  secret:
    secretName: {{ default (printf "%s-keys" $name) .Values.keys.existingSecret | quote }}
    defaultMode: 0440
    items: [{key: {{ .Values.keys.secretKey | quote }}, path: keys.json}]
{{- end }}
{{- if include "k8splugin.access" . }}
- name: access
  secret: {secretName: {{ default (printf "%s-access" $name) .Values.access.existingSecret | quote }}, defaultMode: 0440}
{{- end }}
{{- if include "k8splugin.tls" . }}
- name: tls
  secret: {secretName: {{ default (printf "%s-tls" $name) .Values.tls.existingSecret | quote }}, defaultMode: 0440}
{{- end }}
{{- if .Values.istio.enabled }}
- name: istio-token
  projected:
    defaultMode: 0440
    sources:
    - serviceAccountToken: {audience: istio-ca, expirationSeconds: 43200, path: istio-token}
- name: istio-root
  configMap: {name: {{ .Values.istio.rootConfigMap | quote }}}
{{- end }}
{{- with .Values.store.tlsSecret }}
- name: store
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- if and (include "k8splugin.embedded" .) (not .Values.store.persistence.enabled) }}
- name: data
  emptyDir: {}
{{- end }}
{{- if .Values.audit.file }}
- name: audit
  {{- default (dict "emptyDir" dict) .Values.audit.volume | toYaml | nindent 2 }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "k8splugin.placement" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml .Values.topologySpreadConstraints | nindent 0 }}
{{- else if gt (int .Values.replicas) 1 }}
topologySpreadConstraints:
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [pod-template-hash] # ignores the old pods during an update
  labelSelector:
    matchLabels: {{- include "k8splugin.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- end -}}
