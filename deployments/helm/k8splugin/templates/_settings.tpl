{{- /* The service's configuration file. The store's URI is in the environment, because it may hold a password. */ -}}
{{- define "k8splugin.settings" -}}
{{- $s := dict "listen" ":9015" "drain-timeout" (printf "%ds" (int .Values.drainSeconds)) -}}
{{- if include "k8splugin.embedded" . -}}
{{- $_ := set $s "store" "etcd" -}}
{{- $_ := set $s "data" "/var/lib/k8splugin/data" -}}
{{- end -}}
{{- if not .Values.keys.generate -}}
{{- $_ := set $s "encryption-key-file" "/etc/k8splugin/keys/keys.json" -}}
{{- end -}}
{{- if include "k8splugin.access" . -}}
{{- $_ := set $s "access-file" "/etc/k8splugin/access/access.yaml" -}}
{{- end -}}
{{- if .Values.access.insecureNoAuth -}}
{{- $_ := set $s "insecure-no-auth" true -}}
{{- end -}}
{{- with .Values.access.allowedHosts -}}
{{- $_ := set $s "allowed-hosts" (join "," .) -}}
{{- end -}}
{{- if not .Values.access.protectMetrics -}}
{{- $_ := set $s "protect-metrics" false -}}
{{- end -}}
{{- with .Values.access.rateLimit -}}
{{- $_ := set $s "rate-limit" . -}}
{{- end -}}
{{- if include "k8splugin.tls" . -}}
{{- $_ := set $s "tls-cert" "/etc/k8splugin/tls/tls.crt" -}}
{{- $_ := set $s "tls-key" "/etc/k8splugin/tls/tls.key" -}}
{{- with include "k8splugin.clientCA" . -}}
{{- $_ := set $s "tls-client-ca" (printf "/etc/k8splugin/tls/%s" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.istio -}}
{{- if .enabled -}}
{{- $_ := set $s "istio-ca" (default (printf "istiod.%s.svc:15012" .namespace) .address) -}}
{{- $_ := set $s "istio-token-file" "/var/run/secrets/tokens/istio-token" -}}
{{- $_ := set $s "istio-root-file" "/var/run/secrets/istio/root-cert.pem" -}}
{{- $_ := set $s "istio-cluster" .cluster -}}
{{- $_ := set $s "istio-peers" (join "," .peers) -}}
{{- end -}}
{{- end -}}
{{- if .Values.readinessRules -}}
{{- $_ := set $s "readiness-rules" "/etc/k8splugin/config/readiness.yaml" -}}
{{- end -}}
{{- $callbacks := default list .Values.allowedCallbacks -}}
{{- if .Values.onap.enabled -}}
{{- $_ := set $s "onap-errors" .Values.onap.errors -}}
{{- $callbacks = concat $callbacks (default list .Values.onap.allowedCallbacks) -}}
{{- end -}}
{{- with $callbacks -}}
{{- $_ := set $s "allowed-callbacks" (join "," .) -}}
{{- end -}}
{{- toYaml (merge $s .Values.settings) -}}
{{- end -}}

{{- /* Settings that the chart sets from other values. They are rejected in .Values.settings. */ -}}
{{- define "k8splugin.decided" -}}
config listen data store encryption-key-file access-file insecure-no-auth allowed-hosts protect-metrics rate-limit tls-cert tls-key tls-client-ca istio-ca istio-token-file istio-root-file istio-cluster istio-peers audit-file drain-timeout replica-name onap-errors allowed-callbacks readiness-rules
{{- end -}}

{{- /* Rejects values that cannot work, and reports all of them at once. */ -}}
{{- define "k8splugin.check" -}}
{{- $wrong := list -}}
{{- $v := .Values -}}
{{- $embedded := include "k8splugin.embedded" . -}}
{{- if and $embedded (gt (int $v.replicas) 1) -}}
{{- $wrong = append $wrong "replicas: the embedded store supports one replica only; for more, set store.kind to etcd or mongodb" -}}
{{- end -}}
{{- if and $embedded (or $v.store.uri $v.store.existingSecret $v.store.tlsSecret) -}}
{{- $wrong = append $wrong "store: the embedded store takes no URI and no certificate; set store.kind to etcd or mongodb" -}}
{{- end -}}
{{- if and (not $embedded) (not $v.store.uri) (not $v.store.existingSecret) -}}
{{- $wrong = append $wrong (printf "store: the URI of %s is missing; set store.existingSecret or store.uri" $v.store.kind) -}}
{{- end -}}
{{- if and $v.store.uri $v.store.existingSecret -}}
{{- $wrong = append $wrong "store: store.uri and store.existingSecret are both set; set one of them" -}}
{{- end -}}
{{- if and $v.store.uri (not $embedded) (not (hasPrefix $v.store.kind $v.store.uri)) -}}
{{- $wrong = append $wrong (printf "store.uri: not a URI of %s; it must start with the store.kind" $v.store.kind) -}}
{{- end -}}
{{- $keys := 0 -}}
{{- if $v.keys.existingSecret }}{{ $keys = add1 $keys }}{{ end -}}
{{- if $v.keys.value }}{{ $keys = add1 $keys }}{{ end -}}
{{- if $v.keys.generate }}{{ $keys = add1 $keys }}{{ end -}}
{{- if ne (int $keys) 1 -}}
{{- $wrong = append $wrong "keys: the store needs encryption keys; set exactly one of keys.existingSecret (a Secret with the output of `k8splugin keys init keys.json`), keys.value and, for evaluation, keys.generate" -}}
{{- end -}}
{{- if and $v.keys.generate (not $embedded) -}}
{{- $wrong = append $wrong "keys.generate: all replicas on an external store need the same keys; set keys.existingSecret or keys.value" -}}
{{- end -}}
{{- $access := include "k8splugin.access" . -}}
{{- if and (not $access) (not $v.access.insecureNoAuth) -}}
{{- $wrong = append $wrong "access: the access rules are missing; set access.existingSecret or access.files, or, to allow every request, access.insecureNoAuth: true" -}}
{{- end -}}
{{- if and $access $v.access.insecureNoAuth -}}
{{- $wrong = append $wrong "access.insecureNoAuth: access rules are set too; set one of them" -}}
{{- end -}}
{{- if and $v.access.existingSecret $v.access.files -}}
{{- $wrong = append $wrong "access: access.existingSecret and access.files are both set; set one of them" -}}
{{- end -}}
{{- if and $v.access.files (not (hasKey $v.access.files "access.yaml")) -}}
{{- $wrong = append $wrong "access.files: access.yaml is missing" -}}
{{- end -}}
{{- $monitor := $v.monitoring.serviceMonitor -}}
{{- if and $monitor.enabled $access $v.access.protectMetrics (not $monitor.authorization) (not $monitor.tlsConfig.cert) (not $monitor.tlsConfig.certFile) -}}
{{- $wrong = append $wrong "monitoring.serviceMonitor: /metrics requires authentication; set authorization or a client certificate in tlsConfig, or access.protectMetrics: false" -}}
{{- end -}}
{{- if and $v.tls.existingSecret (or $v.tls.certificate $v.tls.privateKey $v.tls.clientCA) -}}
{{- $wrong = append $wrong "tls: tls.existingSecret and PEM values are both set; set one of them" -}}
{{- end -}}
{{- if ne (empty $v.tls.certificate) (empty $v.tls.privateKey) -}}
{{- $wrong = append $wrong "tls: tls.certificate and tls.privateKey must be set together" -}}
{{- end -}}
{{- if and $v.tls.clientCA (not $v.tls.certificate) -}}
{{- $wrong = append $wrong "tls.clientCA: requires tls.certificate" -}}
{{- end -}}
{{- if and $v.tls.clientCAKey (not $v.tls.existingSecret) -}}
{{- $wrong = append $wrong "tls.clientCAKey: requires tls.existingSecret, in which it is a key" -}}
{{- end -}}
{{- if and $v.istio.enabled (not $v.istio.peers) -}}
{{- $wrong = append $wrong "istio.peers: requires at least one; spiffe://<trust domain>/ allows all workloads of the mesh" -}}
{{- end -}}
{{- if and $v.service.nodePort (ne $v.service.type "NodePort") -}}
{{- $wrong = append $wrong "service.nodePort: requires service.type NodePort" -}}
{{- end -}}
{{- range $name := splitList " " (include "k8splugin.decided" .) -}}
{{- if hasKey $v.settings $name -}}
{{- $wrong = append $wrong (printf "settings.%s: the chart sets this setting; use its value in values.yaml, if it has one" $name) -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (printf "\n  %s" (join "\n  " $wrong)) -}}
{{- end -}}
{{- end -}}
