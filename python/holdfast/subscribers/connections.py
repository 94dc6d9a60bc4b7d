"""Clients of a stream socket that ask once and are answered once: few at a time, with bounded questions, answers and patience.

It does not know what is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError

MOST_CLIENTS = 16
QUESTION_BYTES = 1 << 19
QUESTION_S = 10.0
"""The time that a client has to ask, and to take the first part of its answer and each further one."""

_PART_BYTES = 1 << 16


class NoQuestionError(HoldfastError):
    """The client has sent no whole question in time: its message is for the client."""


class Connections:
    """Answers clients. ``refused`` counts those that came while there were enough; they get ``busy``.

    ``ask`` reads a question, and raises :class:`NoQuestionError` if it is none; ``answer`` answers it, within ``answer_s``.
    ``failed`` makes an answer of a reason.
    """

    def __init__(
        self,
        ask: Callable[[asyncio.StreamReader], Awaitable[bytes]],
        answer: Callable[[bytes], Awaitable[bytes]],
        failed: Callable[[str], bytes],
        answer_s: float,
    ) -> None:
        self._ask, self._answer, self._failed, self._answer_s = ask, answer, failed, answer_s
        self.clients = self.refused = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one client's question and write the answer, or refuse the client if too many are served.

        This is the callback of :func:`asyncio.start_server`, which needs ``limit=QUESTION_BYTES``.
        """
        if self.clients >= MOST_CLIENTS:
            self.refused += 1
            writer.write(self._failed(f"{MOST_CLIENTS} clients are served at a time"))
            writer.close()
            return
        self.clients += 1
        try:
            await _give(writer, await self._answered(reader))
            writer.close()
        except (OSError, TimeoutError):  # the client has gone, or does not take its answer
            writer.transport.abort()
        finally:
            self.clients -= 1

    async def _answered(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(QUESTION_S):
                question = await self._ask(reader)
            async with asyncio.timeout(self._answer_s):
                return await self._answer(question)
        except TimeoutError:
            return self._failed("it has taken too long")
        except asyncio.LimitOverrunError:
            return self._failed("the question is too long")
        except asyncio.IncompleteReadError:
            return self._failed("the question has no end")
        except HoldfastError as error:
            return self._failed(str(error))


async def _give(writer: asyncio.StreamWriter, answer: bytes) -> None:
    """Write an answer in parts; a client that does not receive a part within :data:`QUESTION_S` seconds causes TimeoutError."""
    writer.transport.set_write_buffer_limits(0)
    for at in range(0, len(answer), _PART_BYTES):
        writer.write(answer[at : at + _PART_BYTES])
        async with asyncio.timeout(QUESTION_S):
            await writer.drain()
