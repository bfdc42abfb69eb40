"""Reads JUnit XML as Jenkins and GitLab do, holds it to what they rely on, and prints its test cases."""
import json
import sys
import xml.etree.ElementTree as ElementTree

root = ElementTree.parse(sys.argv[1]).getroot()
assert root.tag == "testsuites", root.tag


def counted(cases):
    failures = sum(case.find("failure") is not None for case in cases)
    errors = sum(case.find("error") is not None for case in cases)
    return {"tests": len(cases), "failures": failures, "errors": errors}


def holds(element, cases):
    for name, count in counted(cases).items():
        assert int(element.attrib[name]) == count, (name, element.attrib)
    assert float(element.attrib["time"]) >= 0, element.attrib


holds(root, list(root.iter("testcase")))
known = set()
told = []
for suite in root:
    assert suite.tag == "testsuite" and suite.attrib["name"] and int(suite.attrib["skipped"]) == 0, suite.attrib
    date, time = suite.attrib["timestamp"].split("T")
    assert len(date) == 10 and len(time) == 8, suite.attrib
    holds(suite, list(suite))
    for case in suite:
        assert case.tag == "testcase" and float(case.attrib["time"]) >= 0, case.attrib
        name = (case.attrib["classname"], case.attrib["name"])
        assert all(name) and name not in known, name
        known.add(name)
        children = list(case)
        assert len(children) <= 1, "the first one counts only"
        child = children[0] if children else None
        if child is not None:
            assert child.tag in ("failure", "error") and child.attrib["message"] and child.attrib["type"], child.attrib
        outcome = {"as": child.tag, **child.attrib, "text": child.text} if child is not None else None
        told.append({"suite": suite.attrib["name"], "class": name[0], "name": name[1], "outcome": outcome})
print(json.dumps(told))
