"""JSON schemas of the files that users write, for editors that complete and check them.

A schema is derived from the models that read the file (:class:`holdfast.parameters.Checked`), with all that they let users write:
units, names without them, numbers as text. It says what a value alone can be. What several values must be together (a link's ends
are nodes, subnets do not overlap) only the reader says, and of a text with a unit only its form is here. A topology's file has no
model of its own; its schema is made of the models of its parts and of the keys that :mod:`holdfast.topologies.yaml_file` takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from holdfast import field_docs
from holdfast.errors import ScenarioError
from holdfast.parameters import Checked, written_names
from holdfast.suggestions import alternatives
from holdfast.units import RATE, Suffix

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

_WHOLE: Final = r"^\s*[+-]?\d[\d_]*(\.0*)?([eE][+]?\d{1,2})?\s*$"
_NUMBER: Final = r"^\s*[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_NUMERAL: Final = r"([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?"


class _Written(GenerateJsonSchema):
    """Schemas of models as users write them."""

    def int_schema(self, schema: Any) -> Schema:
        """Return the schema of whole numbers; YAML's readers take some forms of them for text."""
        return _or_text(super().int_schema(schema), _WHOLE)

    def float_schema(self, schema: Any) -> Schema:
        """Return the schema of numbers, which may be texts too: ``1e9`` is a text in YAML 1.1."""
        return _or_text(super().float_schema(schema), _NUMBER)

    def bytes_schema(self, schema: Any) -> Schema:
        """Return the schema of bytes, which users write as text."""
        return {"type": "string"}

    def dict_schema(self, schema: Any) -> Schema:
        """Return the schema of a mapping, with the form of its keys, which are texts in JSON."""
        found: Schema = super().dict_schema(schema)
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        forms = [each["pattern"] for each in (keys, *keys.get("anyOf", ())) if "pattern" in each]
        if len(forms) == 1 and "$ref" not in keys:
            for values in found.pop("patternProperties", {}).values():
                found["additionalProperties"] = values
            found["propertyNames"] = {"pattern": forms[0]}
        return found

    def model_schema(self, schema: Any) -> Schema:
        """Return the schema of a model, with descriptions from its documentation, and with keys without units if it reads them."""
        found: Schema = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        if "properties" in found:
            found["properties"] = _properties(model, found["properties"])
            if issubclass(model, Checked) and "required" in found:
                _require(model, found)
        found["description"] = field_docs.about(model)
        found.pop("title", None)
        return found


def _or_text(number: Schema, pattern: str) -> Schema:
    return {"anyOf": [number, {"type": "string", "pattern": pattern}]}


def _properties(model: type[BaseModel], given: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the schemas of a model's fields by key, with descriptions, and with the keys that lack the field's unit."""
    words = field_docs.of(model)
    names = {field.alias or name: name for name, field in model.model_fields.items()}
    found: dict[str, Schema] = {}
    short = written_names(model) if issubclass(model, Checked) else {}
    for key, schema in given.items():
        found[key] = {**schema}
        found[key].pop("title", None)
        if (text := words.get(names.get(key, key))) is not None:
            found[key]["description"] = text
        without, suffix = short.get(key, ("", None))
        if suffix is not None:
            found[key] = _with_texts(found[key], _unit_pattern(suffix, schema))
            if without:
                found[without] = _with_unit(schema, suffix, f"{text or ''} The same as {key}, with a unit.".strip())
        elif issubclass(model, Checked) and _is_number(schema, "number"):
            found[key] = _with_texts(found[key], rf"^\s*[+]?{_NUMERAL}\s*%$")
    return found


def _is_number(schema: Schema, *types: str) -> bool:
    kinds = [each.get("type") for each in (schema, *schema.get("anyOf", ()))]
    return not {*types}.isdisjoint(kinds) and "boolean" not in kinds


def _with_texts(schema: Schema, pattern: str) -> Schema:
    """Return a schema of numbers, or of lists of them, that takes texts of a pattern as well."""
    if "items" in schema:
        return {**schema, "items": _with_texts(schema["items"], pattern)}
    if "prefixItems" in schema:
        return {**schema, "prefixItems": [_with_texts(each, pattern) for each in schema["prefixItems"]]}
    if "anyOf" in schema:
        lists = [_with_texts(each, pattern) if "items" in each else each for each in schema["anyOf"]]
        more = [{"type": "string", "pattern": pattern}] if _is_number(schema, "integer", "number") else []
        return {**schema, "anyOf": [*lists, *more]}
    return schema


def _unit_pattern(suffix: Suffix, schema: Schema) -> str:
    """Return the pattern of a quantity with its unit; letters are large or small, but a capital B is no bit."""
    letters = {"u": "[uU\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}]"}
    units = (
        "".join(letters.get(c, f"[{c}{c.upper()}]" if c.isalpha() else re.escape(c)) for c in unit)
        for unit in suffix.quantity.units
    )
    either = "|".join(sorted(units, key=len, reverse=True))
    no_bytes = r"(?![kKmMgGtT]?i?B(/s|ps)?\s*$)" if suffix.quantity is RATE else ""
    return rf"^\s*{_sign(schema)}{_NUMERAL}\s*{no_bytes}({either})\s*$"


def _numbers(schema: Schema) -> list[Schema]:
    """Return the forms of a schema that are numbers, or items of lists that are."""
    forms = [schema, *schema.get("anyOf", ())]
    forms += [each["items"] for each in forms if "items" in each]
    forms += [inner for each in forms for inner in each.get("anyOf", ())]
    return [each for each in forms if each.get("type") in ("integer", "number")]


def _sign(schema: Schema) -> str:
    """Return the pattern of a number's sign: without a minus if the schema allows no negative number."""
    numbers = _numbers(schema)
    positive = all({"minimum": each.get("exclusiveMinimum", -1), **each}["minimum"] >= 0 for each in numbers)
    return "[+]?" if numbers and positive else "[+-]?"


def _with_unit(schema: Schema, suffix: Suffix, description: str) -> Schema:
    """Return the schema of a quantity under its key without the unit: a text with a unit, or zero if the quantity may be zero."""
    forms: list[Schema] = [{"type": "string", "pattern": _unit_pattern(suffix, schema)}]
    if all(each.get("minimum", 0) <= 0 and each.get("exclusiveMinimum", -1) < 0 for each in _numbers(schema)):
        forms.append({"const": 0})
    listed = next((each for each in (schema, *schema.get("anyOf", ())) if "items" in each), None)
    if listed is not None:
        bounds = {name: listed[name] for name in ("minItems", "maxItems") if name in listed}
        forms.append({"type": "array", "items": {"anyOf": list(forms)}, **bounds})
    if any(each.get("type") == "null" for each in schema.get("anyOf", ())):
        forms.append({"type": "null"})
    return {"anyOf": forms, "description": description, "examples": [suffix.quantity.example]}


def _require(model: type[Checked], schema: Schema) -> None:
    """Change the schema so that either key of a required field will do: the one with the unit, or the one without."""
    both = {key: without for key, (without, _) in written_names(model).items() if without and key in schema["required"]}
    if both:
        schema["required"] = [key for key in schema["required"] if key not in both]
        schema["allOf"] = [{"anyOf": [{"required": [name]} for name in pair]} for pair in both.items()]


def of_model(model: type[BaseModel], mode: JsonSchemaMode = "validation") -> Schema:
    """Return the schema of the files that a model reads."""
    return model.model_json_schema(schema_generator=_Written, mode=mode)


# ---- Files ----


def _topology() -> Schema:
    from holdfast.host import Host
    from holdfast.topologies import yaml_file
    from holdfast.topology import Link, PacketGenerator, SwitchNode

    parts = {each.__name__: of_model(each) for each in (Host, SwitchNode, Link, PacketGenerator)}
    definitions: dict[str, Schema] = {}
    for part in parts.values():
        definitions |= part.pop("$defs", {})
    for node in (parts["Host"], parts["SwitchNode"]):
        for name in yaml_file.GIVEN:
            node["properties"].pop(name)
        # What is not given is chosen, and nothing stands for that, too.
        node.pop("required", None)
        node["properties"] = {key: _or_nothing(value) for key, value in node["properties"].items()}
    ports = ("a_port", "b_port")
    link, generator = parts["Link"], parts["PacketGenerator"]
    link["required"] = ["a", "b"]
    for name in ports:
        link["properties"][name] = _or_nothing(link["properties"][name])
    defaults = {**link, "properties": {k: v for k, v in link["properties"].items() if k not in yaml_file.ENDS}}
    defaults.pop("required")
    main = {"Host": parts["Host"], "Switch": parts["SwitchNode"], "Link": link, "LinkDefaults": defaults}
    definitions = {**main, "PacketGenerator": generator, **definitions}

    def named(part: str) -> Schema:
        names = {"type": "array", "items": {"type": "string"}}
        return _or_nothing(
            {"anyOf": [names, {"type": "object", "additionalProperties": _or_nothing(_reference(part))}]}
        )

    def each(part: str) -> Schema:
        return _or_nothing({"type": "array", "items": _reference(part)})

    of_key: dict[str, Schema] = {
        "name": {"type": "string", "description": "The topology's name; by default the file's."},
        "include": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "Files whose declarations come first, relative to this one.",
        },
        "hosts": {**named("Host"), "description": "A list of names, or a mapping of names to options."},
        "switches": {**named("Switch"), "description": "A list of names, or a mapping of names to options."},
        "link_defaults": {
            **_or_nothing(_reference("LinkDefaults")),
            "description": "Options of all links of this file.",
        },
        "links": {**each("Link"), "description": "The links, each between two nodes."},
        "packet_generators": {**each("PacketGenerator"), "description": "Packets that enter switches by themselves."},
        "srlg": {
            **_or_nothing(
                {
                    "type": "object",
                    "additionalProperties": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "uniqueItems": True,
                    },
                }
            ),
            "description": "Shared risk groups by name: links that fail together, each as A-B (A-B#2 of parallel links).",
        },
    }
    return {
        "description": "A topology: hosts, switches and links.",
        "type": ["object", "null"],
        "properties": {key: of_key[key] for key in yaml_file.KEYS},
        "additionalProperties": False,
        "$defs": definitions,
    }


def _reference(part: str) -> Schema:
    return {"$ref": f"#/$defs/{part}"}


def _or_nothing(schema: Schema) -> Schema:
    if any(each.get("type") == "null" for each in (schema, *schema.get("anyOf", ()))):
        return schema
    kept = {key: value for key, value in schema.items() if key in ("description", "examples", "default")}
    inner = {key: value for key, value in schema.items() if key not in kept}
    forms = inner["anyOf"] if list(inner) == ["anyOf"] else [inner]
    return {**kept, "anyOf": [*forms, {"type": "null"}]}


def _traffic() -> Schema:
    from holdfast.compare.traffic_file import TrafficFile

    return of_model(TrafficFile)


def _scenario() -> Schema:
    from holdfast.compare.scenario import Scenario

    return of_model(Scenario, "serialization")


def _entries() -> Schema:
    from holdfast.entries_files.yaml_entries import Entries

    return of_model(Entries)


def _rules() -> Schema:
    from holdfast.apps.firewall.rules import RuleSet

    return of_model(RuleSet)


def _gateway() -> Schema:
    from holdfast.apps.bng.live import LiveConfiguration

    return of_model(LiveConfiguration)


_FILES: Final[Mapping[str, tuple[str, Callable[[], Schema]]]] = {
    "topology": ("a topology, for holdfast compare and others", _topology),
    "traffic": ("the traffic of a comparison, for holdfast compare --traffic", _traffic),
    "entries": ("table entries, for holdfast trace --entries", _entries),
    "rules": ("a firewall's rules, for holdfast firewall", _rules),
    "gateway": ("a broadband gateway, for holdfast bng run", _gateway),
    "scenario": ("a scenario that a comparison has written beside its results (JSON)", _scenario),
}

NAMES: Final = tuple(_FILES)


def what(name: str) -> str:
    """Return what a file of this name is, and which command reads it."""
    return _FILES[name][0]


def schema(name: str) -> Schema:
    """Return the JSON schema of a kind of files. Raise :class:`ScenarioError` for a name that is none of :data:`NAMES`."""
    if name not in _FILES:
        raise ScenarioError(f"there is no schema {name!r}{alternatives(name, NAMES)}")
    return {"$schema": DIALECT, "title": f"Holdfast: {what(name)}", **_tidied(_FILES[name][1]())}


def _tidied(value: Any) -> Any:
    """Return a schema without formats, which editors would check even where a word is allowed, and without empty defaults."""
    if isinstance(value, list):
        return [_tidied(each) for each in value]
    if not isinstance(value, dict):
        return value
    no_format = isinstance(value.get("format"), str) and value.get("type") == "string"
    return {
        key: _tidied(each)
        for key, each in value.items()
        if not (key == "format" and no_format) and not (key == "default" and each in ("", None, [], {}))
    }


__all__ = ["DIALECT", "NAMES", "of_model", "schema", "what"]
