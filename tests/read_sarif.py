"""Reads SARIF, holds it to what the standard requires and code review uses, and prints its results."""
import json
import sys
from urllib.parse import unquote, urlparse

with open(sys.argv[1]) as file:
    log = json.load(file)
assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json"), log.keys()
(run,) = log["runs"]
driver = run["tool"]["driver"]
assert driver["name"] == "aclshim" and driver["semanticVersion"].count(".") == 2
rules = driver["rules"]
assert len({rule["id"] for rule in rules}) == len(rules)
for rule in rules:
    for text in ("shortDescription", "fullDescription", "help"):
        assert rule[text]["text"], rule
    assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note"), rule
bases = run["originalUriBaseIds"]
assert all(base["uri"].startswith("file:///") and base["uri"].endswith("/") for base in bases.values()), bases
told = []
for result in run["results"]:
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in ("error", "warning", "note") and result["kind"] == "fail"
    assert result["message"]["text"] and result["occurrenceCount"] > 0 and result["partialFingerprints"]
    (location,) = result["locations"]
    physical = location["physicalLocation"]
    artifact = physical["artifactLocation"]
    if "uriBaseId" in artifact:
        assert artifact["uriBaseId"] in bases and not urlparse(artifact["uri"]).scheme, artifact
    else:
        assert artifact["uri"].startswith("file:///"), artifact
    line = physical.get("region", {}).get("startLine")
    assert line is None or line > 0
    assert all(name["fullyQualifiedName"] for name in location["logicalLocations"]), location
    told.append({
        "rule": result["ruleId"], "level": result["level"], "count": result["occurrenceCount"],
        "uri": unquote(artifact["uri"]), "base": artifact.get("uriBaseId"), "line": line,
        "names": [name["fullyQualifiedName"] for name in location["logicalLocations"]],
        "suppressed": bool(result.get("suppressions")), "fingerprint": result["partialFingerprints"],
    })
print(json.dumps(told))
