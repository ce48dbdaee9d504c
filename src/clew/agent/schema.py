"""A function's parameters as a JSON schema, and a model's arguments as values of the types it asks for."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct

from clew.agent.docstrings import Described
from clew.errors import ClewError

Json = dict[str, Any]


class BadTool(ClewError):
    """A function cannot be a tool: the text says which parameter is the matter, and what can be described."""


class BadArguments(ClewError):
    """The model's arguments are no JSON object, or not of the types that the tool takes; the text tells the model."""


class Parameters(Struct, frozen=True):
    """What a tool takes: `schema` is JSON schema, `form` the type its arguments are read as."""

    schema: Mapping[str, Any]
    form: type[Struct]

    def read(self, arguments: str) -> dict[str, Any]:
        """The arguments of a call, as a model wrote them, by name and of their types. Raises `BadArguments`."""
        written = arguments.strip()
        try:
            value = msgspec.json.decode("{}" if written in ("", "null") else written, type=self.form)
        except msgspec.ValidationError as error:
            raise BadArguments(f"the arguments do not fit: {error}") from error
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise BadArguments(f"the arguments are not valid JSON: {error}") from error
        read = {name: getattr(value, name) for name in self.form.__struct_fields__}
        return {name: part for name, part in read.items() if part is not UNSET}


def parameters(function: Callable[..., Any], described: Described) -> Parameters:
    """The parameters of a function, by its type hints. Raises `BadTool`.

    What can be described: str, int, float, bool, None, list, dict, tuple, set, Optional and unions, Literal, Enum,
    dataclasses, TypedDict, NamedTuple, msgspec Structs, dates and times, and `Annotated[T, "what it is"]`.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if not inspect.isroutine(function):
        raise BadTool(f"tool {name!r}: {function!r} is no function; write one that calls it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadTool(f"tool {name!r}: a generator has no result; return a list")
    hints = _hints(function, name)
    fields: list[tuple[str, Any, Any]] = []
    defaults: Json = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise BadTool(f"tool {name!r}: parameter {parameter.name!r} must be one that can be given by name")
        if parameter.name not in hints:
            raise BadTool(f"tool {name!r}: parameter {parameter.name!r} has no type hint")
        hint = _annotated(hints[parameter.name], described.parameters.get(parameter.name, ""))
        _check(hint, name, parameter.name)
        required = parameter.default is parameter.empty
        fields.append((parameter.name, hint, msgspec.NODEFAULT) if required else (parameter.name, hint, UNSET))
        if not required and (shown := _shown(parameter.default)) is not UNSET:
            defaults[parameter.name] = shown
    # UNSET is no default that JSON knows: it stands for "not given", and the function's own default counts
    form = msgspec.defstruct(
        name, [(n, h if d is not UNSET else h | msgspec.UnsetType, d) for n, h, d in fields], forbid_unknown_fields=True
    )
    schema = _schema(form)
    for parameter_name, value in defaults.items():
        schema["properties"][parameter_name].setdefault("default", value)
    return Parameters(schema, form)


def _hints(function: Callable[..., Any], name: str) -> Json:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise BadTool(
            f"tool {name!r}: its type hints cannot be read ({error}); define the types it names in a module"
        ) from error
    hints.pop("return", None)
    return hints


def _annotated(hint: Any, text: str) -> Any:
    """The hint with its description: that of the docstring, or a text given in `Annotated`."""
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        said = [e for e in extras if isinstance(e, str)]
        metas = [e for e in extras if isinstance(e, Meta)]
        text = text or " ".join(said)
        for meta in metas:
            base = Annotated[base, meta]
        hint = base
    return Annotated[hint, Meta(description=text)] if text else hint


def _check(hint: Any, tool: str, parameter: str) -> None:
    try:
        msgspec.json.schema(hint)
    except (TypeError, RecursionError) as error:
        reason = str(error).rpartition("\n")[2] or str(error)
        raise BadTool(
            f"tool {tool!r}: parameter {parameter!r} cannot be described as JSON ({reason}); use str, int, float, "
            "bool, list, dict, Optional, Literal, Enum, a dataclass, a TypedDict or a msgspec Struct"
        ) from error


def _shown(default: Any) -> Any:
    """The default as JSON; UNSET for one that has no such form."""
    try:
        return msgspec.to_builtins(default, str_keys=True)
    except TypeError:
        return UNSET


def _schema(form: type[Struct]) -> Json:
    """JSON schema without references (not every provider follows them), but for types that contain themselves."""
    (top,), components = msgspec.json.schema_components([form], ref_template="#/$defs/{name}")
    left: set[str] = set()

    def plain(value: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(value, list):
            return [plain(v, inside) for v in value]
        if not isinstance(value, dict):
            return value
        name = str(value.get("$ref", "")).removeprefix("#/$defs/")
        if name and name in components:
            if name in inside:
                left.add(name)
                return value
            rest = {k: v for k, v in value.items() if k != "$ref"}
            return {**plain(components[name], (*inside, name)), **plain(rest, inside)}
        made = {k: plain(v, inside) for k, v in value.items() if not (k == "title" and isinstance(v, str))}
        values = made.get("enum")
        if isinstance(values, list) and "type" not in made and all(isinstance(v, str) for v in values):
            made["type"] = "string"  # Gemini refuses an enum without one
        return made

    schema = plain(top, ())
    if left:
        schema["$defs"] = {name: plain(components[name], (name,)) for name in sorted(left)}
    return {"type": "object", "properties": {}, **schema}
