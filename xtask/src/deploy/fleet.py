"""Validates the manifests of `load --kubernetes`: `fleet.py FILE VERSION…`.

Each resource against the strict JSON schema of the Kubernetes API of each version; then whether they meet: volumes exist, labels of the
anti-affinity are those of the pods, every pod is restricted, and no argument has a variable that its container does not have.
"""

import re
import sys

import kubernetes_validate
import yaml
from chart import Strict


def meet(resources):
    """What does not fit together."""
    maps = {it["metadata"]["name"] for it in resources if it["kind"] == "ConfigMap"}
    jobs = [it for it in resources if it["kind"] == "Job"]
    if len(jobs) != 2 or [job["spec"].get("completionMode") for job in jobs].count("Indexed") != 1:
        yield "there are not one Job of agents and one of the coordinator", resources[0]
    for job in jobs:
        template = job["spec"]["template"]
        pod, labels = template["spec"], template["metadata"]["labels"]
        if not pod["securityContext"]["runAsNonRoot"] or pod["automountServiceAccountToken"]:
            yield "it may run as root, or has a token of the API", job
        volumes = {it["name"] for it in pod["volumes"]}
        for volume in pod["volumes"]:
            if "configMap" in volume and volume["configMap"]["name"] not in maps:
                yield "there is no such ConfigMap", job
        for container in pod["containers"]:
            context = container["securityContext"]
            if context["allowPrivilegeEscalation"] or not context["readOnlyRootFilesystem"] or context["capabilities"] != {"drop": ["ALL"]}:
                yield "it may write to its root or gain privileges", job
            if missing := {mount["name"] for mount in container["volumeMounts"]} - volumes:
                yield f"there are no volumes {missing}", job
            known = {it["name"] for it in container["env"]}
            used = {name for argument in container["args"] for name in re.findall(r"(?<!\$)\$\((\w+)\)", argument)}
            if unknown := used - known:
                yield f"there are no variables {unknown}", job
        for term in pod.get("affinity", {}).get("podAntiAffinity", {}).get("preferredDuringSchedulingIgnoredDuringExecution", []):
            wanted = term["podAffinityTerm"]["labelSelector"]["matchLabels"]
            if not wanted.items() <= labels.items():
                yield "its anti-affinity is about other pods", job


def main(path, *versions):
    with open(path) as file:
        resources = [it for it in yaml.load_all(file, Strict) if it]
    problems = [f"{it['kind']} {it['metadata']['name']}: {what}" for what, it in meet(resources)]
    for version in versions:
        for resource in resources:
            try:
                kubernetes_validate.validate(resource, version, strict=True)
            except Exception as error:
                problems.append(f"{resource['kind']} {resource['metadata']['name']}, {version}: {error}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(resources)} resources of a fleet by the schemas of {', '.join(versions)}")
    return 1 if problems or not resources else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
