"""Reads metrics with the official parsers: OpenMetrics, and the older text. Prints the sum of each name."""
import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics


def sums(families):
    found = {}
    for family in families:
        assert family.name.startswith("aclshim_") and family.documentation, family
        if family.unit:
            assert family.name.endswith("_" + family.unit), family
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


with open(sys.argv[1]) as file:
    families = list(read_openmetrics(file.read()))
types = {family.name: family.type for family in families}
assert types["aclshim_calls"] == "counter" and types["aclshim_build"] == "info", types
assert types["aclshim_call_duration_seconds"] == "histogram", types
assert "unknown" not in types.values(), types
with open(sys.argv[2]) as file:
    older = list(parser.text_string_to_metric_families(file.read()))
assert not any(family.type in ("unknown", "untyped") for family in older), older
print(json.dumps({"openmetrics": sums(families), "text": sums(older)}))
