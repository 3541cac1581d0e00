"""Makes the status page of the files beside it, as C++: usage assemble.py OUTPUT.cc.

One HTML file, since the page may load nothing, with a Content-Security-Policy that names its one script
and its one style by their digests: nothing else runs, wherever it may come from.
"""

import base64
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Each uses only what stands before it, but in functions. main.js is what starts.
SCRIPTS = ("exposition", "histogram", "reading", "history", "text", "findings", "elements", "line_chart",
           "state_timeline", "bar_table", "sections", "status_page", "main")


def script(names=SCRIPTS):
    """These scripts as one."""
    return '"use strict";\n' + "".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in names)


def policy(style_text, script_text):
    def digest(text):
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (f"default-src 'none'; script-src 'sha256-{digest(script_text)}'; "
            f"style-src 'sha256-{digest(style_text)}'; connect-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'")


def page(script_text):
    """HTML with this script, and its policy."""
    style_text = (HERE / "style.css").read_text(encoding="utf-8")
    html = (HERE / "page.html").read_text(encoding="utf-8")
    html = html.replace("<!-- style -->", style_text).replace("<!-- script -->", script_text)
    return html, policy(style_text, script_text)


def main():
    html, its_policy = page(script())
    pathlib.Path(sys.argv[1]).write_text(
        '#include "server/observability/status_page/status_page.h"\n\n'
        "namespace opserve::server {\n\n"
        f'const char kStatusPage[] = R"page({html})page";\n'
        f'const char kStatusPagePolicy[] = R"page({its_policy})page";\n\n'
        "}  // namespace opserve::server\n", encoding="utf-8")


if __name__ == "__main__":
    main()
