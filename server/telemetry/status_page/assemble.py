"""Makes the pages for people, as C++: usage assemble.py RUNBOOK.md OUTPUT.cc.

The status page is one HTML file of the files beside this one, since it may load nothing, with a
Content-Security-Policy that names its one script and its one style by their digests: nothing else
runs, wherever it may come from. The runbook is HTML with a place to jump to at each heading.
"""

import base64
import hashlib
import html
import json
import math
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
RULES = HERE.parents[2] / "deploy/prometheus/rules"
# Each uses only scripts before it, except inside functions. main.js starts the page.
SCRIPTS = ("exposition", "histogram", "reading", "history", "text", "findings", "elements", "line_chart",
           "state_timeline", "bar_table", "sections", "status_page", "main")
RUNBOOK_STYLE = ":root{color-scheme:light dark}body{max-width:60rem;margin:0 auto;padding:0 1rem 50vh;" \
                "font:15px/1.5 system-ui,sans-serif}pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}" \
                ":target{background:#ffe08a;color:#000}"


def figures():
    """The sums that the page draws over time, by their keys."""
    return json.loads((HERE / "figures.json").read_text(encoding="utf-8"))


def limits():
    """The thresholds of alerts of which the page warns too, and the codes that count as failures."""
    alerts, recording = ((RULES / name).read_text(encoding="utf-8") for name in ("alerts.yml", "recording.yml"))

    def threshold(alert):
        factors = re.search(rf"alert: {alert}\n +expr: .* [<>] ([\d.* ]+)\n", alerts)[1]
        return math.prod(float(factor) for factor in factors.split(" * "))

    return {"queueSeconds": threshold("OpserveQueueOld"),
            "certificateWarningSeconds": threshold("OpserveCertificateExpiresSoon"),
            "certificateCriticalSeconds": threshold("OpserveCertificateExpiresNow"),
            "failureCodes": re.search(r'code=~"([A-Z_|]+)"', recording)[1].split("|")}


def script(names=SCRIPTS):
    """These scripts as one."""
    constants = f'"use strict";\nconst FIGURES = {json.dumps(figures())};\nconst LIMITS = {json.dumps(limits())};\n'
    return constants + "".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in names)


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def policy(style_text, script_text):
    return (f"default-src 'none'; script-src 'sha256-{digest(script_text)}'; "
            f"style-src 'sha256-{digest(style_text)}'; connect-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'")


def page(script_text):
    """HTML with this script, and its policy."""
    style_text = (HERE / "style.css").read_text(encoding="utf-8")
    text = (HERE / "page.html").read_text(encoding="utf-8")
    text = text.replace("<!-- style -->", style_text).replace("<!-- script -->", script_text)
    return text, policy(style_text, script_text)


def anchor(heading):
    """The name by which links lead to a heading, as renderers of Markdown make it."""
    return re.sub(r"\W+", "-", heading.lower())


def runbook_page(markdown):
    """HTML with a place to jump to at each heading, the rest as it is written; and its policy."""
    body, text, is_fenced = [], [], False

    def end_text():
        written = html.escape("\n".join(text).strip("\n"), quote=False)
        if written:
            body.append("<pre>" + re.sub(r"\[([^]]*)\]\((#[\w-]+)\)", r'<a href="\2">\1</a>', written) + "</pre>")
        text.clear()

    for line in markdown.splitlines():
        is_fenced ^= line.startswith("```")
        heading = None if is_fenced else re.fullmatch(r"(#+) (.*)", line)
        if heading is None:
            text.append(line)
            continue
        end_text()
        level = f"h{len(heading[1])}"
        body.append(f'<{level} id="{anchor(heading[2])}">{html.escape(heading[2])}</{level}>')
    end_text()
    lines = "\n".join(body)
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>opserved: runbook</title>\n'
            f"<style>{RUNBOOK_STYLE}</style>\n</head>\n<body>\n{lines}\n</body>\n</html>\n",
            f"default-src 'none'; style-src 'sha256-{digest(RUNBOOK_STYLE)}'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'")


def constant(name, text):
    return f'const char {name}[] = R"page({text})page";\n'


def figure(key, metric, labels, where=(None, None)):
    """As a Figure of status_page.h."""
    words = [key, metric, *(labels + [None])[:2], *where]
    key, metric, first, second, *where = ("nullptr" if word is None else json.dumps(word) for word in words)
    return f"    {{{key}, {metric}, {{{first}, {second}}}, {', '.join(where)}}},\n"


def main():
    status, status_policy = page(script())
    guide, guide_policy = runbook_page(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    pathlib.Path(sys.argv[2]).write_text(
        '#include "server/telemetry/status_page/status_page.h"\n\n'
        "namespace opserve::server {\n\n"
        + constant("kStatusPage", status) + constant("kStatusPagePolicy", status_policy)
        + constant("kRunbookPage", guide) + constant("kRunbookPagePolicy", guide_policy)
        + "\nabsl::Span<const Figure> Figures() {\n  static constexpr Figure kFigures[] = {\n"
        + "".join(figure(key, **rule) for key, rule in figures().items())
        + "  };\n  return kFigures;\n}\n\n}  // namespace opserve::server\n", encoding="utf-8")


if __name__ == "__main__":
    main()
