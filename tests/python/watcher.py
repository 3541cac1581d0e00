"""What a daemon under test says of itself on /metrics."""

import re
import time
import urllib.request


class Watcher:
    """What the metrics of a daemon say."""

    def __init__(self, daemon):
        self._url = f"http://127.0.0.1:{daemon.ready['metrics_port']}/metrics"

    def value(self, sample):
        """The sum of the samples of this name and these labels, a part of them at least."""
        with urllib.request.urlopen(self._url, timeout=60) as page:
            text = page.read().decode()
        name, _, labels = sample.partition("{")
        return sum(
            float(found[2])
            for found in re.finditer(rf"(?m)^{name}(?:{{(.*)}})? (\S+)$", text)
            if labels.rstrip("}") in (found[1] or "")
        )

    def await_value(self, sample, wanted):
        self.await_sum([sample], wanted)

    def await_sum(self, samples, wanted):
        """Waits until the values of all samples are so much together."""
        end = time.monotonic() + 60
        while (found := sum(map(self.value, samples))) != wanted:
            assert time.monotonic() < end, f"{' + '.join(samples)} is {found}, not {wanted}"
            time.sleep(0.02)
