"""Operators' requests to a running gateway, as they are written: one line of JSON each. It knows no gateway."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from holdfast.subscribers.connections import NoQuestionError

_MOST_SHOWN = 200


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Sessions(_Checked):
    """Asks for the sessions; with ``usage``, for their traffic as well."""

    verb: Literal["sessions"]
    usage: bool = False


class Kick(_Checked):
    """Ends sessions."""

    verb: Literal["kick"]
    sessions: Literal["all"] | list[Annotated[int, Field(ge=1, le=65_534)]]


class Drain(_Checked):
    """Has a gateway take no new sessions, or a forwarding plane none at all; or ends that."""

    verb: Literal["drain", "undrain"]
    plane: str | None = None


Request = Sessions | Kick | Drain

_REQUEST: TypeAdapter[Any] = TypeAdapter(Annotated[Request, Field(discriminator="verb")])


def read(line: bytes) -> Request:
    """Parse an operator's request from a line of JSON.

    Raises :class:`NoQuestionError` with one sentence that says what is wrong.
    """
    try:
        request: Request = _REQUEST.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(each) for each in first["loc"])
        said = f"{place}: {first['msg']}" if place else first["msg"]
        raise NoQuestionError(f"not a request: {said[:_MOST_SHOWN]}") from None
    return request
