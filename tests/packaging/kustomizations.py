"""The kustomizations of deploy/kubernetes, as kubectl builds them, and what their images say."""

import functools
import pathlib
import re
import shlex
import shutil
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ("base", "overlays/cpu", "overlays/ascend")
# Of deploy/container, by the image's name.
DOCKERFILES = {"opserve": "Dockerfile", "opserve-cann": "Dockerfile.cann"}


@functools.cache
def build(place):
    """The objects of a kustomization, by their kind: there is one of each."""
    if shutil.which("kubectl") is None:
        raise AssertionError("kubectl is missing: deploy/install_packages.sh --tests")
    run = subprocess.run(["kubectl", "kustomize", ROOT / "deploy/kubernetes" / place], capture_output=True,
                         text=True, timeout=60, check=False)
    if run.returncode != 0:
        raise AssertionError(f"{place}: {run.stderr}")
    objects = list(yaml.safe_load_all(run.stdout))
    result = {entry["kind"]: entry for entry in objects}
    if len(result) != len(objects):
        raise AssertionError(f"{place}: two objects of a kind")
    return result


def container_of(objects):
    container, = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return container


def image_environment(container):
    """The variables that the container's image sets."""
    dockerfile = DOCKERFILES[container["image"].partition(":")[0]]
    text = (ROOT / "deploy/container" / dockerfile).read_text(encoding="utf-8").replace("\\\n", " ")
    settings = [shlex.split(line) for line in re.findall(r"^ENV (.+)$", text, re.MULTILINE)]
    return dict(setting.split("=", 1) for line in settings for setting in line)
