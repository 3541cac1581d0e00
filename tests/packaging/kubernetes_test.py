"""The manifests of deploy/kubernetes: they can be built, and say what opserved understands.

usage: kubernetes_test.py BUILD_DIR
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from kustomizations import DOCKERFILES, PLACES, ROOT, build, container_of, image_environment

BUILD = pathlib.Path(sys.argv.pop()).resolve()


def output(*command):
    # Programs with abseil's flags exit with 1 after --help.
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


@contextlib.contextmanager
def metrics_port():
    """That of a daemon, which ends afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        daemon = subprocess.Popen(
            [BUILD / "bin/opserved", f"--listen=unix:{directory}/s", "--drain_delay=0s", "--metrics_listen=127.0.0.1:0"],
            stderr=subprocess.PIPE, text=True, env=dict(os.environ, OPSERVE_HOST_DEVICES="1"))
        try:
            yield next(entry for entry in map(json.loads, daemon.stderr) if entry["event"] == "ready")["metrics_port"]
        finally:
            daemon.terminate()
            daemon.communicate(timeout=60)


class KubernetesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.built = {place: build(place) for place in PLACES}

    def each(self):
        for objects in self.built.values():
            pod = objects["Deployment"]["spec"]["template"]
            yield objects, pod, container_of(objects)

    def effective_config(self, objects):
        """What `opserved --validate_config` prints of the embedded configuration."""
        text = objects["ConfigMap"]["data"]["opserved.textproto"]
        with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
            file.write(text)
            file.flush()
            run = subprocess.run([BUILD / "bin/opserved", f"--config={file.name}", "--validate_config"],
                                 capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_every_flag_exists(self):
        known = output(BUILD / "bin/opserved", "--help")
        for _, _, container in self.each():
            for argument in container["args"]:
                self.assertRegex(known, rf"\s{argument.split('=')[0]}\s")

    def test_the_hook_finds_the_daemon(self):
        # tests/integration/pre_stop_test.py runs it. The image says where the socket is.
        for objects, _, container in self.each():
            self.assertEqual(container["lifecycle"]["preStop"]["exec"]["command"][:3],
                             ["opserve", "admin", "drain-daemon"])
            target = image_environment(container)["OPSERVE_TARGET"]
            self.assertIn(f'\nlisten: "{target}"', self.effective_config(objects))
            self.assertIn(f'\nadmin_listen: "{target}.admin"', self.effective_config(objects))

    def test_the_configuration_is_valid_and_what_the_pod_has(self):
        for objects, pod, container in self.each():
            config = self.effective_config(objects)
            mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
            self.assertEqual(set(mounts), set(volumes))
            self.assertEqual(volumes["config"]["configMap"]["name"],
                             objects["ConfigMap"]["metadata"]["name"])
            self.assertIn(f"--config={mounts['config']}/opserved.textproto", container["args"])
            for path in re.findall(r'^(?:tls_cert|tls_key|tls_client_ca): "(.+)"$', config, re.M):
                self.assertEqual(str(pathlib.Path(path).parent), mounts["tls"])
            for path in re.findall(r'"unix:(.+)"', config):
                self.assertEqual(str(pathlib.Path(path).parent), mounts["run"])

    def test_ports_agree(self):
        for objects, _, container in self.each():
            config = self.effective_config(objects)
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            self.assertIn(f'listen: "0.0.0.0:{ports["grpc"]}"', config)
            self.assertIn(f'metrics_listen: "0.0.0.0:{ports["metrics"]}"', config)
            self.assertEqual({port["targetPort"]: port["port"] for port in
                              objects["Service"]["spec"]["ports"]}, ports)
            self.assertEqual({rule["ports"][0]["port"] for rule in
                              objects["NetworkPolicy"]["spec"]["ingress"]}, set(ports.values()))
            self.assertIn(objects["ServiceMonitor"]["spec"]["endpoints"][0]["port"], ports)

    def test_a_pod_has_the_time_to_drain(self):
        for objects, pod, container in self.each():
            times = dict(re.findall(r'^(drain_\w+): "(\d+)s"$', self.effective_config(objects), re.M))
            # The hook's own end is after the drain's, and before the kubelet's patience with both it and SIGTERM.
            patience, = [int(flag.removeprefix("--timeout=").removesuffix("s")) for flag in
                         container["lifecycle"]["preStop"]["exec"]["command"] if flag.startswith("--timeout=")]
            self.assertGreater(patience, int(times["drain_delay"]) + int(times["drain_timeout"]))
            self.assertGreater(pod["spec"]["terminationGracePeriodSeconds"], patience)

    def test_selectors_find_the_pods(self):
        for objects, pod, _ in self.each():
            labels = pod["metadata"]["labels"].items()
            for selector in (objects["Deployment"]["spec"]["selector"]["matchLabels"],
                             objects["Service"]["spec"]["selector"],
                             objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
                             objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]):
                self.assertLessEqual(selector.items(), labels)
            self.assertLessEqual(objects["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items(),
                                 objects["Service"]["metadata"]["labels"].items())
            callers = objects["NetworkPolicy"]["spec"]["ingress"][0]["from"][0]
            self.assertEqual(callers["podSelector"]["matchLabels"], {"opserve/client": "true"})
            self.assertEqual(objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"],
                             objects["Deployment"]["metadata"]["name"])

    def test_probes_ask_what_the_daemon_answers(self):
        paths = {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
        for _, _, container in self.each():
            for probe, path in paths.items():
                self.assertEqual(container[probe]["httpGet"], {"path": path, "port": "metrics"})
        with metrics_port() as port:
            for path in paths.values():
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                    self.assertEqual(answer.read(), b"ok\n")

    def test_the_user_is_that_of_the_image_and_of_the_tenant_inside(self):
        for name in DOCKERFILES.values():
            text = (ROOT / "deploy/container" / name).read_text(encoding="utf-8")
            user, = re.findall(r"^USER (\d+):", text, re.M)
            for objects, pod, container in self.each():
                self.assertEqual(pod["spec"]["securityContext"]["runAsUser"], int(user))
                self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
                config = self.effective_config(objects)
                if "tenant {" in config:
                    self.assertIn(f"uid: {user}\n", config)

    def test_npus_are_requested_where_there_are_some(self):
        for place, objects in self.built.items():
            container = container_of(objects)
            for kind in ("requests", "limits"):
                self.assertEqual(container["resources"][kind].get("huawei.com/Ascend910"),
                                 1 if place == "overlays/ascend" else None)

    def test_the_autoscaler_looks_at_a_metric_that_is_served(self):
        with metrics_port() as port:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
                metrics = page.read().decode()
        for objects, _, _ in self.each():
            metric = objects["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
            self.assertRegex(metrics, rf"(?m)^{metric}\{{")


if __name__ == "__main__":
    unittest.main()
