"""What readers of the formats take: the parts of the public schemas that a report uses, and nothing else.

Each was written for these tests from the public description of its format, and is stricter than it: what a report does
not use is not allowed. SARIF: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", sections 3.13
to 3.52, with the requirements that GitHub adds. GitLab: its documentation, "Code Quality report format". JUnit: the
elements, attributes and the pattern of times of the Jenkins xUnit plug-in's junit-10.xsd.
"""


def record(required, optional=()):
    """An object with these properties and no other."""
    properties = {**required, **dict(optional)}
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def array(items, **more):
    return {"type": "array", "items": items, **more}


TEXT = {"type": "string"}
WORD = {"type": "string", "minLength": 1}
MESSAGE = record({"text": WORD})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = record({"id": WORD, "name": WORD, "shortDescription": MESSAGE, "fullDescription": MESSAGE})
LINE = {"type": "integer", "minimum": 1}
PHYSICAL = record({
    "artifactLocation": record({
        # A relative reference (RFC 3986, section 4.2) that does not climb.
        "uri": {"type": "string", "pattern": r"^(?!/|\.\.?/)([A-Za-z0-9._~!$&'()*+,;=@/-]|%[0-9A-F]{2})+$"},
        "uriBaseId": {"const": "%SRCROOT%"},
    }),
    "region": record({"startLine": LINE}),
})  # fmt: skip
LOGICAL = record({"fullyQualifiedName": WORD, "kind": {"const": "function"}})
RESULT = record(
    {
        "ruleId": WORD, "ruleIndex": {"type": "integer", "minimum": 0}, "level": LEVEL, "message": MESSAGE,
        "locations": array(record({"physicalLocation": PHYSICAL}, {"logicalLocations": array(LOGICAL)}), minItems=1),
        "partialFingerprints": {"type": "object", "additionalProperties": WORD, "minProperties": 1},
        "properties": {"type": "object", "additionalProperties": TEXT},
    },
    {"suppressions": array(record({"kind": {"enum": ["inSource", "external"]}, "justification": TEXT}))},
)  # fmt: skip
SARIF = record({
    "$schema": {"type": "string", "pattern": "^https://"},
    "version": {"const": "2.1.0"},
    "runs": array(record({
        "tool": record({"driver": record({
            "name": WORD, "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
            "rules": array(RULE, uniqueItems=True, maxItems=25_000),
        })}),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "invocations": array(record(
            {"executionSuccessful": {"type": "boolean"}, "exitCode": {"type": "integer"}},
            {"toolExecutionNotifications": array(record({"level": LEVEL, "message": MESSAGE}))},
        )),
        "results": array(RESULT, maxItems=5_000),
    }), minItems=1, maxItems=20),
})  # fmt: skip

GITLAB = array(record({
    "description": WORD, "check_name": WORD, "fingerprint": WORD,
    "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
    "location": record({
        "path": {"type": "string", "pattern": r"^(?!/|\.\.?/)[^\n]+$"}, "lines": record({"begin": LINE}),
    }),
}))  # fmt: skip

JUNIT = """\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:simpleType name="seconds">
    <xs:restriction base="xs:string"><xs:pattern value="[0-9]+([.][0-9]+)?"/></xs:restriction>
  </xs:simpleType>
  <xs:complexType name="said" mixed="true">
    <xs:attribute name="type" type="xs:string"/>
    <xs:attribute name="message" type="xs:string"/>
  </xs:complexType>
  <xs:complexType name="property">
    <xs:attribute name="name" type="xs:string" use="required"/>
    <xs:attribute name="value" type="xs:string" use="required"/>
  </xs:complexType>
  <xs:complexType name="properties">
    <xs:sequence><xs:element name="property" type="property" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
  </xs:complexType>
  <xs:complexType name="test">
    <xs:choice minOccurs="0">
      <xs:element name="skipped" type="said"/>
      <xs:element name="error" type="said"/>
      <xs:element name="failure" type="said"/>
    </xs:choice>
    <xs:attribute name="name" type="xs:string" use="required"/>
    <xs:attribute name="classname" type="xs:string"/>
  </xs:complexType>
  <xs:complexType name="suite">
    <xs:sequence>
      <xs:element name="properties" type="properties" minOccurs="0"/>
      <xs:element name="testcase" type="test" minOccurs="0" maxOccurs="unbounded"/>
    </xs:sequence>
    <xs:attribute name="name" type="xs:string" use="required"/>
    <xs:attribute name="tests" type="xs:nonNegativeInteger" use="required"/>
    <xs:attribute name="failures" type="xs:nonNegativeInteger" use="required"/>
    <xs:attribute name="errors" type="xs:nonNegativeInteger" use="required"/>
    <xs:attribute name="skipped" type="xs:nonNegativeInteger"/>
    <xs:attribute name="time" type="seconds"/>
  </xs:complexType>
  <xs:element name="testsuites">
    <xs:complexType>
      <xs:sequence><xs:element name="testsuite" type="suite" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
      <xs:attribute name="name" type="xs:string"/>
      <xs:attribute name="tests" type="xs:nonNegativeInteger"/>
      <xs:attribute name="failures" type="xs:nonNegativeInteger"/>
      <xs:attribute name="errors" type="xs:nonNegativeInteger"/>
    </xs:complexType>
  </xs:element>
</xs:schema>
"""
