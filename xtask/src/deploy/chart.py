"""Validates rendered manifests: `chart.py FILE PROGRAM FOLDER VERSION…`.

Each resource against the strict JSON schema of the Kubernetes API of each version; then whether the resources meet: selectors find pods,
ports and volumes have names that exist, and every pod is restricted. Configurations are checked by the program, in the folder.
"""

import os
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml


class Strict(yaml.SafeLoader):
    """Refuses keys that are there twice, as the API server does."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise ValueError(f"{node.start_mark}: twice: {', '.join(twice)}")
        return super().construct_mapping(node, deep)


def workloads(resources):
    return [it for it in resources if it["kind"] in ("Deployment", "StatefulSet")]


def selects(selector, labels):
    return selector.items() <= labels.items()


def meet(resources):
    """What does not fit together."""
    names = {(it["kind"], it["metadata"]["name"]) for it in resources}
    pods = [it["spec"]["template"] for it in workloads(resources)]
    for it in workloads(resources):
        spec = it["spec"]
        if not selects(spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"]):
            yield "a workload does not select its pods", it
        if "serviceName" in spec and ("Service", spec["serviceName"]) not in names:
            yield "there is no such service", it
        yield from restricted(it, names)
    for it in resources:
        kind, spec = it["kind"], it.get("spec", {})
        if kind == "Service":
            found = [pod for pod in pods if selects(spec["selector"], pod["metadata"]["labels"])]
            if len(found) != 1:
                yield f"it selects {len(found)} workloads", it
            ports = {port["name"] for pod in found for port in pod["spec"]["containers"][0]["ports"]}
            if missing := {port["targetPort"] for port in spec["ports"]} - ports:
                yield f"no pod has the ports {missing}", it
        elif kind == "PodDisruptionBudget":
            labels = spec["selector"]["matchLabels"]
            if len([pod for pod in pods if selects(labels, pod["metadata"]["labels"])]) != 1:
                yield "it selects no workload of its own", it
        elif kind == "ServiceMonitor":
            labels = spec["selector"]["matchLabels"]
            services = [x for x in resources if x["kind"] == "Service" and selects(labels, x["metadata"]["labels"])]
            found = [port["name"] for service in services for port in service["spec"]["ports"]]
            if any(found.count(endpoint["port"]) != 1 for endpoint in spec["endpoints"]):
                yield f"its ports are not those of one service: {found}", it


def restricted(workload, names):
    pod = workload["spec"]["template"]["spec"]
    if not pod["securityContext"]["runAsNonRoot"] or pod["automountServiceAccountToken"]:
        yield "it may run as root, or has a token of the API", workload
    claims = {it["metadata"]["name"] for it in workload["spec"].get("volumeClaimTemplates", [])}
    volumes = claims | {it["name"] for it in pod["volumes"]}
    for volume in pod["volumes"]:
        if "configMap" in volume and ("ConfigMap", volume["configMap"]["name"]) not in names:
            yield "there is no such ConfigMap", workload
    for container in pod["containers"]:
        context = container["securityContext"]
        if (
            context["allowPrivilegeEscalation"]
            or not context["readOnlyRootFilesystem"]
            or context["capabilities"] != {"drop": ["ALL"]}
        ):
            yield "it may write to its root or gain privileges", workload
        if missing := {mount["name"] for mount in container["volumeMounts"]} - volumes:
            yield f"there are no volumes {missing}", workload
        if not {"readinessProbe", "livenessProbe"} <= container.keys():
            yield "it has no probes", workload
        ports = {port["name"] for port in container["ports"]}
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            for how in ("httpGet", "tcpSocket"):
                port = container.get(probe, {}).get(how, {}).get("port")
                if port is not None and port not in ports:
                    yield f"there is no port {port}", workload


def configurations(resources, program, folder):
    """Errors of the files that the program is started with."""
    variables = {"MONITOR_POSTGRES": "postgres://u:p@db/m", "MONITOR_CLICKHOUSE": "http://u:p@db:8123/m"}
    data = {it["metadata"]["name"]: it["data"] for it in resources if it["kind"] == "ConfigMap"}
    for it in resources:
        name = it["metadata"]["name"]
        if it["kind"] != "ConfigMap" or name.endswith("-content"):
            continue
        content = Path(folder) / name
        content.mkdir(parents=True, exist_ok=True)
        for file, text in data.get(f"{name}-content", {}).items():
            (content / file).write_text(text)
        for file, text in it["data"].items():
            copy = Path(folder) / file
            copy.write_text(text.replace("/srv/content", str(content)))
            command = [program, file.removesuffix(".toml"), "--check", str(copy)]
            run = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
            if run.returncode != 0:
                yield f"{file}: {run.stderr}", it


def main(path, program, folder, *versions):
    with open(path) as file:
        resources = [it for it in yaml.load_all(file, Strict) if it]
    problems = [f"{it['kind']} {it['metadata']['name']}: {what}" for what, it in (*meet(resources), *configurations(resources, program, folder))]
    # A resource of the Prometheus operator, whose schema Kubernetes does not have.
    known = [it for it in resources if it["kind"] != "ServiceMonitor"]
    for version in versions:
        for resource in known:
            try:
                kubernetes_validate.validate(resource, version, strict=True)
            except Exception as error:
                problems.append(f"{resource['kind']} {resource['metadata']['name']}, {version}: {error}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(resources)} resources, {len(known)} of them by the schemas of {', '.join(versions)}")
    return 1 if problems or not known else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
