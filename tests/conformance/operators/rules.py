"""What stage one has to refuse of an operator, by its description: a name for each rule.

Cases that break a rule name it (refusals.py, broken_checks.py); evidence_test.py tells which ones no case breaks.
"""

import re

from dtype_rules import split_arguments
from elements import DTYPES, accepted


def checks_of(description):
    """(function, arguments) of each check, the daemon's own too."""
    found = [re.fullmatch(r"(\w+)\((.*)\)", text) for text in [*description.check, *description.daemon_check]]
    return [(match[1], split_arguments(match[2])) for match in found]


def check_rule(function, arguments):
    return f"{function}({', '.join(arguments)})"


def missing(name):
    return f"{name} is there"


def dtype(name):
    return f"dtype of {name}"


def rank(name):
    return f"rank of {name}"


def lowest(name):
    return f"least {name}"


def highest(name):
    return f"most {name}"


def choice(name):
    return f"choice of {name}"


def broadcast(name):
    return f"broadcast of {name}"


def is_limited(argument):
    return any(d not in accepted(argument) for d in DTYPES)


def can_break(description, function, arguments):
    """Whether something can be wrong that no other rule sees first, such as that of an argument's own dtype."""
    if function == "written":  # an output like the input is empty, too
        return all(a.shape != f"like({arguments[0]})" for a in description.argument if a.name == arguments[1])
    found = [accepted(a) for a in description.argument if a.name in arguments]
    if function in ("same_dtype", "same_dtypes"):
        return any(len(dtypes) > 1 for dtypes in found)
    return function != "double_alone" or any("DOUBLE" in dtypes for dtypes in found)


def rules_of(description, kinds):
    """The names of an operator's rules."""
    found = []
    tensors = 0
    for a in description.argument:
        is_tensor = a.kind in (kinds.TENSOR, kinds.TENSOR_LIST)
        if is_tensor and a.role != kinds.OUTPUT:
            tensors += 1
            found += [missing(a.name)] if not a.optional else []
            found += [dtype(a.name)] if is_limited(a) else []
            found.append(rank(a.name))
        elif is_tensor:
            found += [dtype(a.name)] if a.dtypes and is_limited(a) else []
            found += [broadcast(a.name)] if "broadcast(" in a.shape and tensors > 1 else []
        elif a.role == kinds.INPUT:
            found += [missing(a.name)] if not a.HasField("default") and not a.optional else []
            found += [lowest(a.name)] if a.HasField("minimum") else []
            found += [highest(a.name)] if a.HasField("maximum") else []
            found += [choice(a.name)] if a.names else []
            found += [dtype(a.name)] if a.kind == kinds.DTYPE and is_limited(a) else []
    for function, arguments in checks_of(description):
        if can_break(description, function, arguments):
            found.append(check_rule(function, arguments))
    return found
