{{- define "plimsoll.name" -}}
{{- printf "%s-plimsoll-%s" .root.Release.Name .part | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: plimsoll
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "plimsoll.labels" -}}
{{ include "plimsoll.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "plimsoll.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What a part has of its own: configuration files by their names. */ -}}
{{- define "plimsoll.files" -}}
{{- $values := index .root.Values .part -}}
{{- if eq .part "monitor" -}}
monitor.toml: |
  {{- if eq $values.store.kind "sqlite" }}
  store = "/var/lib/plimsoll/monitor.db"
  {{- end }}
  {{- $values.config | trim | nindent 2 }}
  {{- if eq $values.store.kind "servers" }}

  [store]
  postgres = { env = "MONITOR_POSTGRES" }
  clickhouse = { env = "MONITOR_CLICKHOUSE" }
  spill = "/var/lib/plimsoll/monitor.spill"
  spill_limit = "256MiB"
  {{- end }}
{{- else -}}
up.toml: |
  {{- /* First, since it may begin with keys of no table. */ -}}
  {{- if eq .part "gateway" }}
  {{- $values.config | trim | nindent 2 }}
  {{- else if eq .part "mock" }}
  [[route]]
  mock = { {{ ternary "file = \"/srv/content/apimock.toml\"" "dir = \"/srv/content\"" (hasKey $values.files "apimock.toml") }} }
  {{- else }}
  [[route]]

  [route.files]
  root = "/srv/content"
  {{- $values.options | trim | nindent 2 }}
  {{- end }}

  [[listen]]
  address = "{{ .root.Values.bindAddress }}:8080"

  [metrics]
  address = "{{ .root.Values.bindAddress }}:9090"
{{- end -}}
{{- end -}}

{{- /* The pod of a part. */ -}}
{{- define "plimsoll.pod" -}}
{{- $values := index .root.Values .part -}}
{{- $isMonitor := eq .part "monitor" -}}
metadata:
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
  annotations:
    # Pods are replaced when what they serve changes.
    checksum/config: {{ include "plimsoll.files" . | sha256sum }}
    {{- if $values.files }}
    checksum/content: {{ $values.files | toJson | sha256sum }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  # 5 s until no client is sent here any more, and 30 s to drain.
  terminationGracePeriodSeconds: 45
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .part }}
      image: {{ include "plimsoll.image" .root | quote }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      {{- if $isMonitor }}
      args: ["monitor", "--sandbox", "/etc/plimsoll/monitor.toml", "--listen", "{{ .root.Values.bindAddress }}:8080"]
      {{- else }}
      args: ["up", "--sandbox", "/etc/plimsoll/up.toml"]
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: ["ALL"]}
      ports:
        - {name: http, containerPort: 8080, protocol: TCP}
        {{- if not $isMonitor }}
        - {name: metrics, containerPort: 9090, protocol: TCP}
        {{- end }}
      {{- if or $values.envSecret (and $isMonitor (eq (dig "store" "kind" "" $values) "servers")) }}
      envFrom:
        {{- if $values.envSecret }}
        - secretRef: {name: {{ $values.envSecret | quote }}}
        {{- end }}
        {{- if and $isMonitor (eq $values.store.kind "servers") }}
        - secretRef: {name: {{ required "monitor.store.serversSecret is needed with monitor.store.kind=servers" $values.store.serversSecret | quote }}}
        {{- end }}
      {{- end }}
      {{- if $isMonitor }}
      # 503 where another process runs the checks, or while the store is away.
      readinessProbe:
        httpGet: {path: /health, port: http}
        periodSeconds: 5
      startupProbe:
        tcpSocket: {port: http}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        tcpSocket: {port: http}
        periodSeconds: 10
        failureThreshold: 6
      {{- else }}
      readinessProbe:
        httpGet: {path: /readyz, port: metrics}
        periodSeconds: 5
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- end }}
      lifecycle:
        preStop:
          sleep: {seconds: 5}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/plimsoll, readOnly: true}
        {{- if $isMonitor }}
        - {name: state, mountPath: /var/lib/plimsoll}
        {{- else if eq .part "site" }}
        - {name: content, mountPath: /srv/content, readOnly: true}
        {{- else if eq .part "mock" }}
        # One by one: files of a ConfigMap are symbolic links, which mocks do not follow.
        {{- range $name, $_ := $values.files }}
        - {name: content, mountPath: {{ printf "/srv/content/%s" $name | quote }}, subPath: {{ $name | quote }}, readOnly: true}
        {{- end }}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ include "plimsoll.name" . }}}
    {{- if and $isMonitor (eq $values.store.kind "servers") }}
    # Results wait here while ClickHouse is away.
    - name: state
      emptyDir: {sizeLimit: 512Mi}
    {{- else if and (eq .part "site") $values.volume }}
    - name: content
      {{- toYaml $values.volume | nindent 6 }}
    {{- else if or (eq .part "site") (eq .part "mock") }}
    - name: content
      configMap: {name: {{ include "plimsoll.name" . }}-content}
    {{- end }}
  {{- if gt (int $values.replicas) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "plimsoll.selector" . | nindent 10 }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
