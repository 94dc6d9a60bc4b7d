"""Every documented function's text begins with a verb, and the check can say no."""

from __future__ import annotations

from pathlib import Path

import pytest
import sentences


def test_every_function_says_what_it_does() -> None:
    found = sentences.documented()
    assert len(found) > 7000
    assert not [f"{doc.path}:{doc.line}: {doc.first}" for doc in found if not doc.sound]


@pytest.mark.parametrize(
    ("name", "text", "sound"),
    [
        ("a.rs", "/// Returns the time before which nothing may leave.\nfn f() {}", True),
        ("a.rs", "/// Returns it.\npub(crate) fn f() {}", False),
        ("a.rs", "/// The time before which nothing may leave.\nfn f() {}", False),
        ("a.rs", "/// Of the packets that are there.\n#[pyo3(signature = (\n    a,\n    b,\n))]\nfn f() {}", False),
        ("a.rs", "/// Whether it is so or not.\n#[inline]\nfn f() {}", False),
        ("a.py", 'def f():\n    """Return the time."""', True),
        ("a.py", 'def f():\n    """Returns the time."""', False),
        ("a.py", 'def f():\n    """The time."""', False),
        ("a.py", '@property\ndef f():\n    """The time."""', None),
    ],
)
def test_what_is_no_sentence_is_found(tmp_path: Path, name: str, text: str, sound: bool | None) -> None:
    (tmp_path / name).write_text(text)
    assert [doc.sound for doc in sentences.documented(tmp_path / name)] == ([] if sound is None else [sound])
