#!/usr/bin/python3
"""Counts the lines of code and of comments in the rooms of the product.

C++ and Python under server, client, ops and proto, without generated files. A code line has something beside
blanks and comments; a comment line has comment alone (in Python also a docstring's lines). The share is that of
comment lines in all lines of sources (.cc) that are not blank; who-words (what, who, whose, whoever, whom) are
counted in comment lines, for each 1,000 of them.
"""

import argparse
import ast
import collections
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("server", "client", "ops", "proto")
CPP = (".c", ".cc", ".h", ".inc")
GENERATED = re.compile(r"\b(made|generated|written) by\b.*\b(generate_\w+|reference|make_\w+)\.py", re.I)
WHO_WORDS = re.compile(r"\b(what|who|whose|whoever|whom)\b", re.I)
# First those that may hide the beginning of a comment: a raw string, a string, a number with separators, a character.
CPP_TOKEN = re.compile(
    r"""R"(?P<end>[^(\s"]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|\b\d[\w.']*|'(?:\\.|[^'\\\n])*'"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/)""", re.S)


class Count:
    """Of files together."""

    def __init__(self):
        self.code = self.comments = self.who_words = 0
        self.source_code = self.source_comments = 0  # those of .cc files

    def add(self, other):
        for name, number in vars(other).items():
            setattr(self, name, getattr(self, name) + number)

    def share(self):
        return 100 * self.source_comments / max(self.source_code + self.source_comments, 1)

    def who_share(self):
        return 1000 * self.who_words / max(self.comments, 1)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def cpp_lines(text):
    """The text without comments, and the comments alone, each with the lines where they were."""
    code, comments, end = [], [], 0
    for token in CPP_TOKEN.finditer(text):
        between = text[end:token.start()]
        code.append(between)
        comments.append(blank(between))
        is_comment = token["comment"] is not None
        code.append(blank(token[0]) if is_comment else token[0])
        comments.append(token[0] if is_comment else blank(token[0]))
        end = token.end()
    code.append(text[end:])
    comments.append(blank(text[end:]))
    return "".join(code).split("\n"), "".join(comments).split("\n")


def python_lines(text):
    """As cpp_lines."""
    code = text.split("\n")
    comments = [""] * len(code)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            code[row - 1] = code[row - 1][:column]
            comments[row - 1] = token.string
    for node in ast.walk(ast.parse(text)):
        if (isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                and ast.get_docstring(node, clean=False) is not None):
            docstring = node.body[0]
            for row in range(docstring.lineno - 1, docstring.end_lineno):
                comments[row], code[row] = code[row], ""
    return code, comments


def count_file(path):
    text = path.read_text(encoding="utf-8")
    count = Count()
    if GENERATED.search("\n".join(text.split("\n")[:5])):
        return count
    for code, comment in zip(*(cpp_lines if path.suffix in CPP else python_lines)(text)):
        if code.strip():
            count.code += 1
        elif comment.strip():
            count.comments += 1
            count.who_words += len(WHO_WORDS.findall(comment))
    if path.suffix == ".cc":
        count.source_code, count.source_comments = count.code, count.comments
    return count


def count_tree(commit):
    """By folder, and "all" together."""
    counts = collections.defaultdict(Count)
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit, *FOLDERS], check=True, stdout=subprocess.PIPE)
    with tempfile.TemporaryDirectory() as directory:
        tarfile.open(fileobj=io.BytesIO(archive.stdout)).extractall(directory)
        for folder in FOLDERS:
            for path in sorted(pathlib.Path(directory, folder).rglob("*")):
                if path.is_file() and path.suffix in (*CPP, ".py"):
                    counted = count_file(path)
                    counts[folder].add(counted)
                    counts["all"].add(counted)
    return counts


def table(counts, before=None):
    yield ["", "code", "comments", "in sources", "who-words"] + (["code since"] if before else [])
    for folder in (*FOLDERS, "all"):
        count = counts[folder]
        line = [folder, str(count.code), str(count.comments), f"{count.share():.1f} %", f"{count.who_share():.1f}"]
        yield line + ([f"{count.code - before[folder].code:+d}"] if before else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD", help="that is counted; default: HEAD")
    parser.add_argument("--since", metavar="COMMIT", help="also tell how many code lines there are more than then")
    arguments = parser.parse_args()
    before = count_tree(arguments.since) if arguments.since else None
    for first, *others in table(count_tree(arguments.commit), before):
        print(first.ljust(8) + "".join(cell.rjust(12) for cell in others))
    return 0


if __name__ == "__main__":
    sys.exit(main())
