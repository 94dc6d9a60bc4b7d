"""An authenticator that knows its subscribers from a configuration, without RADIUS."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.subscribers.authentication import Answer, Question, Verdict
from holdfast.subscribers.chap import holds
from holdfast.subscribers.configuration import User


class UserList:
    """Judges at once."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = {name.encode(): user for name, user in users.items()}

    def authenticate(self, question: Question, answer: Answer) -> None:
        """Judge a login by the list of users, and call ``answer`` with the verdict at once."""
        user = self._users.get(question.credentials.user)
        if user is None or not holds(question.credentials, user.password.encode()):
            answer(Verdict(False, "wrong user name or password"))
            return
        answer(user.verdict())
